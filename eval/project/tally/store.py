"""The book on disk: one JSON file."""

import json
import os
from datetime import date
from pathlib import Path

from tally.entries import Entry

VERSION = 1


def load(path):
    """Read all entries; a book that does not exist is empty."""
    path = Path(path)
    if not path.exists():
        return []
    book = json.loads(path.read_text(encoding="utf-8"))
    return [
        Entry(
            date.fromisoformat(entry["day"]),
            entry["amount"],
            entry["category"],
            entry.get("note", ""),
            entry.get("person", ""),
        )
        for entry in book["entries"]
    ]


def save(path, entries):
    """Write all entries; the old book is there until the new one is complete."""
    rows = [
        {
            "day": entry.day.isoformat(),
            "amount": entry.amount,
            "category": entry.category,
            "note": entry.note,
            "person": entry.person,
        }
        for entry in entries
    ]
    text = json.dumps({"version": VERSION, "entries": rows}, indent=1, ensure_ascii=False)
    made = Path(f"{path}.new")
    made.write_text(text + "\n", encoding="utf-8")
    os.replace(made, path)
