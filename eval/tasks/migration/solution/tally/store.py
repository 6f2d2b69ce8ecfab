"""The book on disk: one JSON file."""

import json
import os
import shutil
from datetime import date
from pathlib import Path

from tally.entries import Entry

VERSION = 2
FIRST = 1


def load(path):
    """Read all entries; a book that does not exist is empty."""
    path = Path(path)
    if not path.exists():
        return []
    book = json.loads(path.read_text(encoding="utf-8"))
    if book["version"] > VERSION:
        raise ValueError(f"{path} is of version {book['version']}; this program reads versions up to {VERSION}")
    return [
        Entry(
            date.fromisoformat(entry["day"]),
            entry["amount"] if book["version"] == FIRST else entry["cents"] / 100,
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
            "cents": round(entry.amount * 100),
            "category": entry.category,
            "note": entry.note,
            "person": entry.person,
        }
        for entry in entries
    ]
    text = json.dumps({"version": VERSION, "entries": rows}, indent=1, ensure_ascii=False)
    keep_first(Path(path))
    made = Path(f"{path}.new")
    made.write_text(text + "\n", encoding="utf-8")
    os.replace(made, path)


def keep_first(path):
    """Copy a book of version 1 beside itself before it is overwritten, unless there is a copy."""
    copy = path.with_name(f"{path.name}.v1")
    if path.exists() and not copy.exists() and json.loads(path.read_text(encoding="utf-8"))["version"] == FIRST:
        shutil.copyfile(path, copy)
