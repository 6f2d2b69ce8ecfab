"""Make the demo (CLI `demo`): a repository with a small program and a backlog, and what to try with it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from aiflow.settings import FILE_NAME
from aiflow.usecases.init_project import IGNORED, to_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.messages import Texts

TEST_COMMAND = "-m unittest -q"
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
    """Something to try: its name (what it is for is the text `demo.try.<name>`), and what to type."""

    name: str
    commands: tuple[str, ...]


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
    files[".gitignore"] = "".join(f"{line}\n" for line in (*IGNORED, *LEFT_BEHIND))
    root = place.build(files, texts("demo.commit"))
    return Demo(root, python, place.needs, place.traces(root))


def suggest(demo: Demo, texts: Texts, *, has_run: bool) -> tuple[Suggestion, ...]:
    """Say what a newcomer may try now, in an order in which every command works."""
    start = () if has_run else ("aiflow next", "aiflow forecast", "aiflow auto")
    groups: dict[str, tuple[str, ...]] = {
        "look": (*demo.needs, f"cd {shlex.quote(demo.root)}", "aiflow list"),
        "start": start,
        "why": ("aiflow why TODO-5", f'aiflow resume TODO-4 --answer "{texts("demo.answer")}"', "aiflow auto"),
        "logs": ("aiflow logs TODO-3",),
        "use": (
            "git log --graph --oneline",
            f"{demo.python} todo.py add {texts('demo.thing')} --due 2025-01-31",
            f"{demo.python} todo.py list",
        ),
        "mend": ("aiflow why TODO-7", "aiflow set TODO-7 depends_on=", "aiflow forecast", "aiflow auto"),
        "end": (f"rm -rf {shlex.join(demo.traces)}",),
    }
    return tuple(Suggestion(name, commands) for name, commands in groups.items() if commands)
