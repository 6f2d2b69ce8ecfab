"""Keeps a book of what a household spends."""
