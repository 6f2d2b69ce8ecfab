"""What a clean does, for a person: what goes and why, what stays and why, and how to bring it back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.render import say, table
from aiflow.domain.clean.cleaning import CleanReason, ItemKind
from aiflow.messages.sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.clean.cleaning import CleanRules, Item
    from aiflow.messages import Texts
    from aiflow.usecases.clean.clean_up import CleanFailure

# Of these only the number is of interest.
_COUNTED = (CleanReason.YOUNG, CleanReason.ACTIVE, CleanReason.LOCKED)


def show_going(items: list[Item], texts: Texts) -> None:
    """List what goes."""
    rows = [
        [
            texts(f"clean.kind.{item.kind}"),
            size_text(item.size_bytes) if item.size_bytes else "",
            item.run_id if item.kind is ItemKind.WORKTREE else item.name,
            texts(f"clean.goes.{item.why}"),
        ]
        for item in items
    ]
    table([texts(f"column.{name}") for name in ("kind", "size", "name", "why")], rows)


def show_kept(items: list[Item], rules: CleanRules, texts: Texts) -> None:
    """List what stays, each with its reason; what is only too young or at work is counted."""
    counts = Counter(item.why for item in items)
    single = [item for item in items if item.why not in _COUNTED and not _goes_without_saying(item, items)]
    if single:
        click.echo(texts("clean.kept"))
    for item in single:
        say(item.name, f"  {texts(f'clean.kind.{item.kind}')}  ")
        say(texts(f"clean.stays.{item.why}"), "    ")
    for why in (each for each in _COUNTED if counts[each]):
        click.echo(texts(f"clean.stays.{why}", count=counts[why], days=rules.after_days))


def _goes_without_saying(item: Item, items: list[Item]) -> bool:
    """Return whether another line says it: what is kept for its worktree, refs that are kept with their branch."""
    if item.why == CleanReason.WORKTREE_KEPT:
        return True
    return item.kind is ItemKind.REF and any(
        other.kind is ItemKind.BRANCH and (other.run_id, other.why) == (item.run_id, item.why) for other in items
    )


def show_ways_back(items: Iterable[Item], texts: Texts) -> None:
    """Name the commands that bring unmerged work back."""
    commands = [
        f"git branch {item.name} {item.commit}"
        if item.kind is ItemKind.BRANCH
        else f"git update-ref {item.name} {item.commit}"
        for item in items
        if item.is_unmerged
    ]
    if commands:
        click.echo(texts("clean.back"))
    for command in commands:
        click.echo(f"  {command}")


def show_failed(failures: Iterable[CleanFailure], texts: Texts) -> None:
    """Say what could not be taken away."""
    for failure in failures:
        say(texts.say(failure.problem), f"{failure.error.reason_code}: {failure.item.name}: ", err=True)
