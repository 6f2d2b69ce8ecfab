"""Make a project ready for aiflow (CLI `init`): its settings, as far as they can be found out, and an example backlog.

No file that is there already is changed: what git should not see, `.aiflow/` and `runs/`, ignores itself.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.agents.programs import choose
from aiflow.domain.backlog.folder import is_request_file, strangers
from aiflow.domain.next_action import shell
from aiflow.domain.runs.worktree import FILL_SUBMODULES
from aiflow.errors import BadInputError
from aiflow.settings import BY_NAME, FILE_NAME, TABLE, Setting, Settings, SettingValue, Source
from aiflow.usecases.project.detect import Look, Toolchain, detect

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from aiflow.domain.agents.programs import AgentProgram
    from aiflow.domain.next_action import NextAction
    from aiflow.messages import Texts
    from aiflow.ports import AgentPrograms, Clock, Journal

FILES_NAMED = 3


class Folder(Protocol):
    """A place to make files in, never over existing ones."""

    def create(self, path: str, text: str) -> bool:
        """Create a file; False if it exists."""


class RepositoryLook(Protocol):
    """A repository to look at."""

    def branch(self) -> str:
        """Return the branch that is checked out; empty if there is none."""

    def names(self, folder: str) -> frozenset[str]:
        """Return the names of what is in a folder; none if there is no such folder."""

    def files(self, folder: str) -> frozenset[str]:
        """Return what git tracks or would add in a folder and one level below (`src`: two), by its paths from there."""

    def tracked(self, folder: str) -> tuple[str, ...]:
        """Return everything that git tracks in a folder, by its paths from the root."""

    def read(self, path: str) -> str:
        """Return a file's text; nothing if it cannot be read."""

    def has_program(self, name: str) -> bool:
        """Return whether a program is installed."""


class Choices(NamedTuple):
    """What a new `aiflow.toml` says; `by` is the file that tests and set-up were found by, `others` what else was."""

    values: Mapping[str, SettingValue]
    by: Mapping[str, str]
    others: tuple[Toolchain, ...] = ()
    missing: tuple[str, ...] = ()


class Site(NamedTuple):
    """Where a project is made: its repository, this machine's agents, the settings as they are so far.

    `start` is the folder below the root that a person is in.
    """

    folder: Folder
    look: RepositoryLook
    programs: AgentPrograms
    settings: Settings
    start: str = ""


@dataclass(frozen=True, slots=True)
class Initialised:
    """What was made, what was there already, what a new settings file says, and what of it a person `asked` for."""

    made: tuple[str, ...]
    kept: tuple[str, ...]
    requests_dir: str
    agent: AgentProgram | None
    choices: Choices
    asked: Mapping[str, SettingValue]

    @property
    def is_new(self) -> bool:
        """Whether there was no settings file before."""
        return FILE_NAME in self.made


def init_project(site: Site, agent_name: str | None, texts: Texts, record: tuple[Journal, Clock]) -> Initialised:
    """Make what is missing and keep what is there; examples only where there is no backlog yet."""
    journal, clock = record
    requests_dir = site.settings.requests_dir
    has_requests = any(is_request_file(name) for name in site.look.names(requests_dir))
    if not (has_requests and FILE_NAME in site.look.names("")):
        require_own_folder(site.look, requests_dir)
    given = {name: site.settings.values[name] for name, of in site.settings.sources.items() if of is Source.FLAG}
    agent = choose_agent(site.programs, agent_name or str(given.get("agent.kind", "")) or None)
    if requests_dir != BY_NAME["requests_dir"].default:
        given["requests_dir"] = requests_dir
    choices = choose_settings(site.look, site.start, given, agent)
    files = {FILE_NAME: settings_file(texts, choices.values)}
    if not has_requests:
        files |= example_requests(texts, clock(), requests_dir)
    made: list[str] = []
    kept: list[str] = []
    for path, text in files.items():
        (made if site.folder.create(path, text) else kept).append(path)
    if has_requests:
        kept.append(f"{requests_dir}/")
    if made:
        journal.append(Activity(clock(), ActivityKind.PROJECT_INITIALISED, Actor.PERSON, data={"made": made}))
    asked = given | (agent_settings(agent) if agent and agent_name else {})
    return Initialised(tuple(made), tuple(kept), requests_dir, agent, choices, asked)


def require_own_folder(look: RepositoryLook, requests_dir: str) -> None:
    """Refuse a folder for the requests that is used for something else: what agents change there is undone (REQ-8)."""
    found = strangers(requests_dir, look.tracked(requests_dir))
    if found:
        named = ", ".join(found[:FILES_NAMED])
        more = f", … ({len(found)})" if len(found) > FILES_NAMED else ""
        raise BadInputError(reason_code="REQUESTS_DIR_IN_USE", path=f"{requests_dir}/", detail=named + more)


def choose_settings(
    look: RepositoryLook, start: str, given: Mapping[str, SettingValue], agent: AgentProgram | None
) -> Choices:
    """Choose what a new project's settings say: what a person gave, else what the repository shows.

    `start` is the folder below the root that a person is in: it counts where the root itself has nothing to test.
    """
    found = _found_in(look, "")
    if start and not any(each.unit for each in found):
        found = (*_found_in(look, start), *found)
    best = found[0] if found else Toolchain("")
    setup, setup_by = _set_up(look, best)
    values: dict[str, SettingValue] = {
        "base_branch": look.branch(),
        **(agent_settings(agent) if agent else {}),
        "tests.unit": best.unit,
        "worktree.setup": setup,
        **given,
    }
    shown_by = {"tests.unit": best.by, "worktree.setup": setup_by}
    by = {name: file for name, file in shown_by.items() if values[name] and name not in given}
    others = tuple(each for each in found[1:] if each.unit and "tests.unit" in by)
    return Choices(values, by, others, _missing(look, [str(values[name]) for name in by]))


def _set_up(look: RepositoryLook, best: Toolchain) -> tuple[str, str]:
    """Return the command that prepares a worktree and the files that show it; submodules, empty there, come first."""
    parts = [(FILL_SUBMODULES, ".gitmodules")] if ".gitmodules" in look.files("") else []
    parts += [(best.setup, best.by)] if best.setup else []
    return " && ".join(command for command, _ in parts), ", ".join(file for _, file in parts)


def _found_in(look: RepositoryLook, folder: str) -> tuple[Toolchain, ...]:
    """Look at one folder; commands begin at the root."""
    way = f"{folder}/" if folder else ""
    found = detect(Look(look.files(folder), lambda name: look.read(way + name), look.has_program))
    if not folder:
        return found
    step = f"cd {shlex.quote(folder)} && "
    return tuple(Toolchain(way + by, unit and step + unit, setup and step + setup) for by, unit, setup in found)


def _missing(look: RepositoryLook, commands: Iterable[str]) -> tuple[str, ...]:
    """Name the programs of commands that are not installed here; what a set-up makes has a path."""
    programs = (part.split()[0] for command in commands for part in command.split(" && "))
    named = dict.fromkeys(program for program in programs if program != "cd" and "/" not in program)
    return tuple(program for program in named if not look.has_program(program))


def commit_of(done: Initialised, start: str = "", elsewhere: str = "") -> NextAction | None:
    """Return how to commit what was made and nothing else, for a person in a folder below the root, or elsewhere."""
    git = f"git -C {shlex.quote(elsewhere)}" if elsewhere else "git"
    way = "../" * len(start.split("/")) if start and not elsewhere else ""
    made = dict.fromkeys(FILE_NAME if path == FILE_NAME else done.requests_dir for path in done.made)
    paths = shlex.join(f"{way}{path}" for path in made)
    return shell(f'{git} add {paths} && {git} commit -m "Set up aiflow" -- {paths}') if made else None


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


def settings_file(texts: Texts, values: Mapping[str, SettingValue]) -> str:
    """Write a short `aiflow.toml`: what was chosen, each with its meaning, and where all other settings are listed."""
    lines = [f"# {line}" for line in texts("init.settings_head").splitlines()]
    section = ""
    for setting in TABLE:
        if setting.name not in values:
            continue
        parent, _, key = setting.name.rpartition(".")
        lines += ["", f"[{parent}]"] if parent != section else [""] if not parent else []
        section = parent
        lines += [f"# {meaning(setting, texts)}", f"{key} = {to_toml(values[setting.name])}"]
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


def example_requests(texts: Texts, now: datetime, requests_dir: str) -> dict[str, str]:
    """Write two commented requests, both drafts: nothing runs before a person says so."""
    stamp = now.isoformat(timespec="seconds")
    return {
        f"{requests_dir}/EXAMPLE-{number}.md": texts(f"init.example_{number}", now=stamp).lstrip("\n")
        for number in (1, 2)
    }
