"""The queue as everybody uses it: add, look, explain."""
