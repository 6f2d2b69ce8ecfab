"""A to-do list for the command line, kept in `todo.json`.

python3 todo.py add Buy milk
python3 todo.py list
python3 todo.py done 1
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import listing

FILE = Path("todo.json")


def add(things: list[dict], given: argparse.Namespace) -> str:
    """Add a thing to do."""
    things.append({"text": " ".join(given.text), "done": False})
    return f"Added as number {len(things)}."


def tick_off(things: list[dict], given: argparse.Namespace) -> str:
    """Tick a thing off."""
    thing = things[given.number - 1]
    thing["done"] = True
    return f"Done: {thing['text']}"


def show(things: list[dict], given: argparse.Namespace) -> str:
    """Show the list."""
    lines = listing.lines(things)
    return "\n".join(lines) or "Nothing to do."


def read_command(words: list[str] | None) -> argparse.Namespace:
    """Read what was typed."""
    parser = argparse.ArgumentParser(prog="todo.py", description="A to-do list for the command line.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    adding = commands.add_parser("add", help="add a thing to do")
    adding.add_argument("text", nargs="+", help="what is to be done")
    adding.set_defaults(run=add)

    showing = commands.add_parser("list", help="show the list")
    showing.set_defaults(run=show)

    ticking = commands.add_parser("done", help="tick a thing off")
    ticking.add_argument("number", type=int, help="its number in the list")
    ticking.set_defaults(run=tick_off)

    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    """Carry out one command."""
    given = read_command(words)
    before = FILE.read_text(encoding="utf-8") if FILE.exists() else "[]"
    things = json.loads(before)
    print(given.run(things, given))
    after = json.dumps(things, ensure_ascii=False, indent=2)
    if after != before:
        FILE.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
