"""Writing to a terminal: columns, colours, a live area."""
