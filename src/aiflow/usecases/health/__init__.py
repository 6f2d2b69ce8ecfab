"""The doctor's quick check, before every run."""
