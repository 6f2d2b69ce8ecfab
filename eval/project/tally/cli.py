"""The commands."""

import argparse
from datetime import date

from tally import report, store
from tally.entries import Entry, in_month
from tally.money import format_amount, parse_amount, split_amount

TOTALS = {"category": report.by_category, "month": report.by_month, "person": report.by_person}


def make_parser():
    """Describe the commands and their options."""
    parser = argparse.ArgumentParser(prog="tally", description="Keep a book of what you spend.")
    parser.add_argument("--book", default="book.json", metavar="FILE")
    commands = parser.add_subparsers(dest="command", required=True)

    add = commands.add_parser("add", help="add an entry")
    add.add_argument("amount")
    add.add_argument("category")
    add.add_argument("note", nargs="?", default="")
    add.add_argument("--date", type=date.fromisoformat, default=None, metavar="YYYY-MM-DD")
    add.add_argument("--person", default="", metavar="NAME")
    add.set_defaults(act=add_entry)

    listing = commands.add_parser("list", help="list the entries")
    listing.set_defaults(act=list_entries)

    totals = commands.add_parser("report", help="show totals")
    totals.add_argument("--month", metavar="YYYY-MM")
    totals.add_argument("--by", choices=sorted(TOTALS), default="category")
    totals.set_defaults(act=show_report)

    split = commands.add_parser("split", help="divide an amount among people")
    split.add_argument("amount")
    split.add_argument("people", nargs="+", metavar="PERSON")
    split.set_defaults(act=show_split)
    return parser


def add_entry(options):
    """tally add"""
    entries = store.load(options.book)
    amount = parse_amount(options.amount)
    entries.append(Entry(options.date or date.today(), amount, options.category, options.note, options.person))
    store.save(options.book, entries)
    return 0


def list_entries(options):
    """tally list"""
    for entry in sorted(store.load(options.book), key=lambda entry: entry.day):
        print(f"{entry.day}  {format_amount(entry.amount):>10}  {entry.category:<12}  {entry.note}".rstrip())
    return 0


def show_report(options):
    """tally report"""
    entries = store.load(options.book)
    if options.month:
        entries = in_month(entries, options.month)
    for name, total in TOTALS[options.by](entries):
        print(f"{name:<16} {format_amount(total):>10}")
    return 0


def show_split(options):
    """tally split"""
    for person, share in split_amount(parse_amount(options.amount), options.people).items():
        print(f"{person:<16} {format_amount(share):>10}")
    return 0


def main(arguments=None):
    """Run a command and return its exit code."""
    options = make_parser().parse_args(arguments)
    return options.act(options)
