"""Totals of entries."""


def totals_by(entries, name_of):
    """Return each name's total; an entry whose name is None does not count."""
    totals = {}
    for entry in entries:
        name = name_of(entry)
        if name is not None:
            totals[name] = totals.get(name, 0) + entry.amount
    return {name: round(total, 2) for name, total in totals.items()}


def by_category(entries):
    """Return (category, total), the largest total first; entries without a category are last, as (none)."""
    totals = totals_by(entries, lambda entry: entry.category.lower())
    rows = sorted(totals.items(), key=lambda row: (row[0] == "", -row[1], row[0]))
    return [(name or "(none)", total) for name, total in rows]


def by_month(entries):
    """Return (month, total), the oldest month first."""
    return sorted(totals_by(entries, lambda entry: entry.day.strftime("%Y-%m")).items())


def by_person(entries):
    """Return (person, total), by name; what nobody is named for is left out."""
    totals = totals_by(entries, lambda entry: entry.person or None)
    return sorted(totals.items(), key=lambda row: row[0].lower())
