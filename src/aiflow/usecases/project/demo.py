"""Make the demo (CLI `demo`): a repository with a small program and a backlog, and what to try with it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from aiflow.domain.next_action import ActionKind, NextAction, shell
from aiflow.settings import FILE_NAME
from aiflow.usecases.project.init import to_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.messages import Texts

TEST_COMMAND = "-m unittest -q"
FORECAST, AUTO = NextAction(ActionKind.FORECAST), NextAction(ActionKind.AUTO)
# What the program and its tests leave behind.
LEFT_BEHIND = ("__pycache__/", "todo.json")


class DemoPlace(Protocol):
    """Where a demo goes, and where it comes from."""

    python: str
    """The interpreter as it is called there."""

    needs: tuple[str, ...]
    """Commands without which a person's shell would not find this program, or would find other settings."""

    def load(self, language: str) -> dict[str, str]:
        """Return the demo's files in one language, path -> text."""

    def build(self, files: Mapping[str, str], message: str) -> str:
        """Make a repository with these files in its first commit and return its folder, or leave nothing behind."""

    def traces(self, root: str) -> tuple[str, ...]:
        """Return every folder that a demo and its runs leave."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Something to try: its name (what it is for is the text `demo.try.<name>`), and what to do."""

    name: str
    actions: tuple[NextAction, ...]


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that was made."""

    root: str
    python: str
    needs: tuple[str, ...]
    traces: tuple[str, ...]


def make_demo(place: DemoPlace, texts: Texts) -> Demo:
    """Make the repository with everything that its runs need."""
    files = place.load(texts.language)
    python = shlex.quote(place.python)
    own, general = to_toml(f"{python} {TEST_COMMAND}"), to_toml(f"python3 {TEST_COMMAND}")
    files[FILE_NAME] = files[FILE_NAME].replace(general, own)
    files[".gitignore"] = "".join(f"{line}\n" for line in LEFT_BEHIND)
    root = place.build(files, texts("demo.commit"))
    return Demo(root, python, place.needs, place.traces(root))


def suggest(demo: Demo, texts: Texts, *, has_run: bool) -> tuple[Suggestion, ...]:
    """Say what a newcomer may try now, in an order in which every command works."""
    start = () if has_run else (NextAction(ActionKind.NEXT), FORECAST, AUTO)
    answer = NextAction(ActionKind.ANSWER, "TODO-4", options=(("answer", texts("demo.answer")),))
    groups: dict[str, tuple[NextAction, ...]] = {
        "look": (
            *map(shell, (*demo.needs, f"cd {shlex.quote(demo.root)}")),
            NextAction(ActionKind.LIST).having(all=""),
        ),
        "start": start,
        "why": (NextAction(ActionKind.WHY, "TODO-5"), answer, AUTO),
        "logs": (NextAction(ActionKind.LOGS, "TODO-3"),),
        "use": (
            shell("git log --graph --oneline"),
            shell(f"{demo.python} todo.py add {texts('demo.thing')} --due 2025-01-31"),
            shell(f"{demo.python} todo.py list"),
        ),
        "mend": (
            NextAction(ActionKind.WHY, "TODO-7"),
            NextAction(ActionKind.SET, "TODO-7", options=(("depends_on", ""),)),
            FORECAST,
            AUTO,
        ),
        "end": (shell(f"rm -rf {shlex.join(demo.traces)}"),),
    }
    return tuple(Suggestion(name, actions) for name, actions in groups.items() if actions)
