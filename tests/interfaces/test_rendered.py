"""What is drawn (ERR-1): help and screens in both languages, as a person sees them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import forked
from aiflow.cli.main import cli
from aiflow.cli.session import current_texts, use_texts
from aiflow.cli.terminal.layout import display_width
from aiflow.cli.words import translate_click
from aiflow.messages import Texts
from builders import write_request
from conftest import Program
from interfaces.test_nothing_english import QUOTED, SENTENCE

KEYS = set(json.loads((Path(__file__).parents[2] / "src/aiflow/messages/ui.v1.en.json").read_text(encoding="utf-8")))
NAMED = re.compile(r"(?<![\w./-])[a-z_]+(?:\.[\w-]+)+(?![\w/-])")
FAULTS = {
    "a fact that is missing": re.compile(r"(?<![`'\"{])\{\w+\}"),
    "two periods": re.compile(r"(?<![./'`*])\.\.(?![./'`\w])"),
    "1 of many": re.compile(
        r"(?<![\d.,:/#-])1 (?:requests|runs|tasks|steps|files|lines|minutes|hours|days|sessions|calls)\b"
    ),
    "two spaces": re.compile(r"[a-z][.,;] {2}(?=[a-z])(?!aiflow)"),
}
# Names of parts and rights as GitHub and others write them; quoted as they came.
OTHERS = re.compile(
    r"pip install .*|npm install .*|git (?:add|commit|config|branch|worktree) .*|claude auth login|codex login"
)
BUSY = (
    "status",
    "list",
    "next",
    "why RQ-2",
    "why RQ-1",
    "show RQ-1",
    "forecast",
    "runs",
    "report RQ-1",
    "activity",
    "locks",
)
EMPTY = (
    "status",
    "list",
    "next",
    "forecast",
    "runs",
    "activity",
    "locks",
    "clean --dry-run",
    "settings",
    "settings --changed",
)
LOOKS = ("agents", "auto --last", "status --cost", "sessions", "clean --dry-run", "queue --help", "diff RQ-1 --stat")


def faults(text: str, language: str) -> list[tuple[str, str]]:
    """What no person should read in a text that was drawn."""
    seen = [(what, found[0]) for what, wrong in FAULTS.items() if (found := wrong.search(text))]
    seen += [("a text's name", name) for name in NAMED.findall(text) if name in KEYS]
    if language == "ja":
        plain = OTHERS.sub("", QUOTED.sub("", text))
        seen += [("English", found[0]) for found in SENTENCE.finditer(plain)]
    return seen


@pytest.fixture
def speaking(request: pytest.FixtureRequest) -> Iterator[str]:
    """The language in which this process draws help, for the time of a test."""
    before = current_texts()
    use_texts(Texts(request.param))
    translate_click(request.param)
    yield request.param
    use_texts(before)
    translate_click("en")


def helps(command: click.Command, width: int, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """The help of a command and of all below it."""
    context = command.make_context(
        command.name, [], parent, resilient_parsing=True, terminal_width=width, max_content_width=width
    )
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from helps(below, width, context)


@pytest.mark.spec("ERR-1", "CLI")
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("speaking", ["en", "ja"], indirect=True)
def test_every_help_is_written_with_care_and_fits(speaking: str, width: int) -> None:
    shown = dict(helps(cli, width))
    assert len(shown) > 45
    for name, text in shown.items():
        told, _, _examples = text.partition(f"\n{current_texts()('cli.examples')}:")
        assert faults(told.partition("\n\n")[2], speaking) == [], name
        assert [line for line in told.splitlines() if display_width(line) > width] == [], name


@pytest.mark.spec("CLI")
def test_the_first_help_is_short() -> None:
    [(_, text), *_] = helps(cli, 80)
    assert len(text.split()) < 250


@pytest.fixture
def shop(repository: Path, aiflow: Program, language: str) -> Path:
    """A repository with a finished run, whose report is in this language, one that waits, and what can never run."""
    (repository / "aiflow.toml").write_text('[agent]\nkind = "demo"\n')
    write_request(repository, "RQ-1", "---\nstatus: ready\npriority: P1\n---\n# 見出し\n")
    write_request(repository, "RQ-2", "---\nstatus: ready\ndepends_on: [RQ-1, RQ-2, GONE]\n---\n# 二番目\n")
    write_request(repository, "RQ-3", "---\nstatus: nonsense\n---\n# 三番目\n")
    for line in ("config user.name Ada", "config user.email ada@example.org", "add .", "commit -q -m Work"):
        subprocess.run(["git", *line.split()], cwd=repository, check=True)
    aiflow("--lang", language, "run", "RQ-1")
    return repository


def screen(aiflow: Program, language: str, line: str) -> str:
    """What a command shows, however it ends."""
    done = forked.call(["--lang", language, *line.split()], "", str(aiflow.cwd), aiflow.environ)
    return done.stdout + done.stderr


@pytest.mark.spec("ERR-1")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_screens_of_a_backlog_are_written_with_care(shop: Path, aiflow: Program, language: str) -> None:
    for line in (*BUSY, *LOOKS):
        assert faults(screen(aiflow, language, line), language) == [], line


@pytest.mark.spec("ERR-1")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_screens_of_an_empty_backlog_are_written_with_care(
    repository: Path, aiflow: Program, language: str
) -> None:
    (repository / "requests").mkdir(exist_ok=True)
    for line in EMPTY:
        assert faults(screen(aiflow, language, line), language) == [], line
