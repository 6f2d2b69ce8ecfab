"""Requests: created, edited and looked at."""
