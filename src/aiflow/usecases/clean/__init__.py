"""Cleaning up after finished runs."""
