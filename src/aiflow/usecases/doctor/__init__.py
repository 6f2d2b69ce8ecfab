"""The doctor's full check."""
