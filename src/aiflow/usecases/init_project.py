"""Make a project ready for aiflow (CLI `init`): settings, an example backlog, lines for git to ignore."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.agent_programs import choose
from aiflow.settings import FILE_NAME, ROLES, TABLE, Setting, SettingValue

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.agent_programs import AgentProgram
    from aiflow.messages import Texts
    from aiflow.ports import AgentPrograms, Clock, Journal

# Only at the root: a project may have folders of these names of its own, with work in them.
IGNORED = ("/.aiflow/", "/runs/")


class Folder(Protocol):
    """A place to make files in, never over existing ones."""

    def create(self, path: str, text: str) -> bool:
        """Create a file; False if it exists."""

    def add_lines(self, path: str, lines: tuple[str, ...]) -> tuple[str, ...]:
        """Add the lines a file lacks, return those added."""


@dataclass(frozen=True, slots=True)
class Initialised:
    """What was made, and what was there already."""

    made: tuple[str, ...]
    kept: tuple[str, ...]


def init_project(
    folder: Folder,
    has_requests: bool,  # noqa: FBT001
    texts: Texts,
    record: tuple[Journal, Clock],
    agent: AgentProgram | None = None,
) -> Initialised:
    """Make what is missing and keep what is there; examples only where there is no backlog yet."""
    journal, clock = record
    files = {FILE_NAME: settings_file(texts, agent)}
    if not has_requests:
        files |= example_requests(texts, clock())
    made: list[str] = []
    kept: list[str] = []
    for path, text in files.items():
        (made if folder.create(path, text) else kept).append(path)
    if has_requests:
        kept.append("requests/")
    (made if folder.add_lines(".gitignore", IGNORED) else kept).append(".gitignore")
    if made:
        journal.append(Activity(clock(), ActivityKind.PROJECT_INITIALISED, Actor.PERSON, data={"made": made}))
    return Initialised(tuple(made), tuple(kept))


def choose_agent(programs: AgentPrograms, name: str | None) -> AgentProgram | None:
    """Choose a new project's agent: the kind or program that a person names, else the best of what is installed."""
    found = programs.survey()
    if name is None:
        return choose(found)
    named = [program for program in found if name in (program.kind, program.program)]
    return choose(named) or named[0]


def agent_settings(agent: AgentProgram) -> dict[str, SettingValue]:
    """Return the settings that choose an agent."""
    argv: dict[str, SettingValue] = {"agent.argv": agent.argv} if agent.argv else {}
    return {"agent.kind": agent.kind, **argv}


def settings_file(texts: Texts, agent: AgentProgram | None = None) -> str:
    """Write `aiflow.toml` from the table: each setting with its meaning and default, all but the agent as a comment."""
    given = agent_settings(agent) if agent else {}
    lines = [f"# {line}" for line in texts("init.settings_head").splitlines()]
    section = ""
    last_of_agent = [setting for setting in TABLE if setting.name.rpartition(".")[0] == "agent"][-1]
    for setting in TABLE:
        parent, _, key = setting.name.rpartition(".")
        if parent.startswith("agent.roles."):
            continue
        if parent != section:
            section = parent
            lines += ["", f"[{section}]"]
        elif not parent:
            lines.append("")
        is_given = setting.name in given
        value = to_toml(given.get(setting.name, setting.default))
        lines += [f"# {meaning(setting, texts)}", f"{'' if is_given else '# '}{key} = {value}"]
        if setting is last_of_agent:  # behind this line everything would be the role's
            lines += ["", f"# {texts('setting.agent.roles', roles=', '.join(ROLES))}"]
            lines += ["# [agent.roles.planner]", '# model = ""']
    return "\n".join(lines) + "\n"


def meaning(setting: Setting, texts: Texts) -> str:
    """Return what a setting means, with what it may be."""
    parts = setting.name.split(".")
    key = f"setting.agent.{parts[-1]}" if parts[:2] == ["agent", "roles"] else f"setting.{setting.name}"
    choices = " | ".join(choice for choice in setting.choices if choice)
    return texts(key) + (f" ({choices})" if choices else "")


def to_toml(value: SettingValue) -> str:
    """Write a value as TOML; JSON's texts, numbers and lists are TOML's too."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def example_requests(texts: Texts, now: datetime) -> dict[str, str]:
    """Write two commented requests, both drafts: nothing runs before a person says so."""
    stamp = now.isoformat(timespec="seconds")
    return {
        f"requests/EXAMPLE-{number}.md": texts(f"init.example_{number}", now=stamp).lstrip("\n") for number in (1, 2)
    }
