"""Merging a run's branch into the base branch."""
