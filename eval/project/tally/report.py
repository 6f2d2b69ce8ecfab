"""Totals of entries."""


def by_category(entries):
    """Return (category, total), the largest total first; entries without a category are last, as (none)."""
    totals = {}
    for entry in entries:
        name = entry.category.lower()
        if name not in totals:
            totals[name] = 0
        totals[name] = totals[name] + entry.amount
    rows = []
    for name in sorted(totals, key=lambda name: (name == "", -totals[name], name)):
        if name == "":
            rows.append(("(none)", round(totals[name], 2)))
        else:
            rows.append((name, round(totals[name], 2)))
    return rows


def by_month(entries):
    """Return (month, total), the oldest month first."""
    totals = {}
    for entry in entries:
        name = entry.day.strftime("%Y-%m")
        if name not in totals:
            totals[name] = 0
        totals[name] = totals[name] + entry.amount
    rows = []
    for name in sorted(totals):
        rows.append((name, round(totals[name], 2)))
    return rows


def by_person(entries):
    """Return (person, total), by name; what nobody is named for is left out."""
    totals = {}
    for entry in entries:
        name = entry.person
        if name == "":
            continue
        if name not in totals:
            totals[name] = 0
        totals[name] = totals[name] + entry.amount
    rows = []
    for name in sorted(totals, key=lambda name: name.lower()):
        rows.append((name, round(totals[name], 2)))
    return rows
