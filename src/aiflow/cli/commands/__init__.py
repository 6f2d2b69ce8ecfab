"""One command per module, named like the command."""
