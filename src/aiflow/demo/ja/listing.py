"""一覧の見た目。"""

from __future__ import annotations


def lines(things: list[dict]) -> list[str]:
    """一覧を行のリストにして返す。"""
    shown = [line(number, thing) for number, thing in in_order(things)]
    return shown


def in_order(things: list[dict]) -> list[tuple[int, dict]]:
    """番号を付けて、表示する順に返す。"""
    return list(enumerate(things, start=1))


def line(number: int, thing: dict) -> str:
    """1件分の行を返す。"""
    tick = "x" if thing["done"] else " "
    return f"{number:>2} [{tick}] {thing['text']}"
