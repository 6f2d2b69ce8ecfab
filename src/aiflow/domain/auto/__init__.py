"""The rules of auto-run: continue or stop."""
