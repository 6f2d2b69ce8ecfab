"""What the outside gets to see: domain values as plain data, the same for CLI, API and page."""
