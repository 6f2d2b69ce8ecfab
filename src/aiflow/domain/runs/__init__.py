"""The rules of runs: what happens in one, what it does next, how it continues."""
