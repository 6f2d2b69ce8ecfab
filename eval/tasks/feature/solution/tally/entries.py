"""Entries of the book, and how to choose among them."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Entry:
    """Something that somebody paid."""

    day: date
    amount: float
    category: str
    note: str = ""
    person: str = ""


def month_range(month):
    """Return the first day of a month (YYYY-MM), and the first of the next one."""
    year, number = (int(part) for part in month.split("-"))
    return date(year, number, 1), date(year, number + 1, 1)


def in_month(entries, month):
    """Return the entries of a month."""
    first, end = month_range(month)
    return [entry for entry in entries if first <= entry.day < end]


def chosen(entries, category=None, since=None, until=None):
    """Return the entries of a category, in any case, and of the days from one to another; None is no limit."""
    return [
        entry
        for entry in entries
        if (category is None or entry.category.lower() == category.lower())
        and (since is None or entry.day >= since)
        and (until is None or entry.day <= until)
    ]


def duplicates(entries):
    """Return the entries that are there already: same day, amount, category and person, in the order of the book."""
    found = []
    for number, entry in enumerate(entries):
        for other in entries[:number]:
            if (
                entry.day == other.day
                and entry.amount == other.amount
                and entry.category.lower() == other.category.lower()
                and entry.person == other.person
            ):
                found.append(entry)
                break
    return found
