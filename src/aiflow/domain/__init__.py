"""The rules, pure: no I/O, no clock, no randomness; `now`, ids and liveness are arguments."""
