"""コマンドラインの ToDo リスト。内容は `todo.json` に保存します。

python3 todo.py add 牛乳を買う
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
    """やることを追加する。"""
    things.append({"text": " ".join(given.text), "done": False})
    return f"{len(things)}番に追加しました。"


def tick_off(things: list[dict], given: argparse.Namespace) -> str:
    """完了の印を付ける。"""
    thing = things[given.number - 1]
    thing["done"] = True
    return f"完了: {thing['text']}"


def show(things: list[dict], given: argparse.Namespace) -> str:
    """一覧を表示する。"""
    lines = listing.lines(things)
    return "\n".join(lines) or "やることはありません。"


def read_command(words: list[str] | None) -> argparse.Namespace:
    """入力されたコマンドを読み取る。"""
    parser = argparse.ArgumentParser(prog="todo.py", description="コマンドラインの ToDo リスト")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    adding = commands.add_parser("add", help="やることを追加する")
    adding.add_argument("text", nargs="+", help="やることの内容")
    adding.set_defaults(run=add)

    showing = commands.add_parser("list", help="一覧を表示する")
    showing.set_defaults(run=show)

    ticking = commands.add_parser("done", help="完了の印を付ける")
    ticking.add_argument("number", type=int, help="一覧での番号")
    ticking.set_defaults(run=tick_off)

    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    """コマンドを1つ実行する。"""
    given = read_command(words)
    before = FILE.read_text(encoding="utf-8") if FILE.exists() else "[]"
    things = json.loads(before)
    print(given.run(things, given))
    after = json.dumps(things, ensure_ascii=False, indent=2)
    if after != before:
        FILE.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
