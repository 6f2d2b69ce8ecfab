"""The git program."""
