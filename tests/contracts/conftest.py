"""The queue stores, for the tests of this folder."""

from queue_stores import namespace, prepared, queue, runners, store

__all__ = ["namespace", "prepared", "queue", "runners", "store"]
