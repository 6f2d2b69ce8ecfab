"""Placeholder replaced in this change."""
