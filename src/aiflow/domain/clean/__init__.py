"""The rules of cleaning up: what may go once runs are over."""
