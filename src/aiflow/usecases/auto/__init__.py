"""Auto-run: one request after another, until something says stop."""
