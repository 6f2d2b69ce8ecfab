"""What the pages say besides their examples is true: the commands for a reason, the changelog, what a registry shows."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.cli.main import ALIASES
from aiflow.domain import reasons
from aiflow.messages import Texts
from aiflow.messages.commands import command_line
from doc_examples import fenced, without_code

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "release/pypi.md"]
# What only looks is no way to fix anything, and never wrong.
LOOKS = {"list", "show", "next", "why", "forecast", "status", "runs", "logs", "report", "diff", "shell", "activity"}
LOOKS |= {"agents", "doctor", "locks", "settings", "open"}
# What `aiflow why` names for a mistake in a request, from the mistake and not from the catalogue.
FIXED_BY_SET = {"DEPENDS_NOT_FOUND", "DEPENDS_CYCLE", "REQUEST_INVALID"}
TYPED = re.compile(r"`aiflow ([^`]+)`")
CODE = re.compile(r"\b[A-Z]{3,}(?:_[A-Z]+)+\b|\bCANCELLED\b")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# --- reasons and commands ---------------------------------------------------------------------------------------------


def meant(typed: str) -> tuple[str, ...]:
    """Return what a command does, whatever it is done to: its name, flags and fields."""
    words = re.sub(r'"[^"]*"', "", typed).split()
    first, last = ALIASES.get(words[0], ((words[0],), ()))
    kept = [word for word in (*words[1:], *last) if word.startswith("-") or "=" in word]
    if first[0] == "retry-step":
        kept = [word for word in kept if word != "--answer"]  # a hint for the agent
    return (*first, *sorted(re.sub(r"=.*", "=", word) if word.startswith("depends_on") else word for word in kept))


def advised(code: str) -> set[tuple[str, ...]]:
    """Return the commands that the catalogue has for a reason."""
    reason = reasons.CATALOGUE[code]
    said = [advice.typed for advice in Texts("en").message(code, {}).actions]
    if reason.way_on in reasons.WAYS:
        said.append(f"`{command_line(reasons.WAYS[reason.way_on])}`")
    return {meant(typed) for text in said for typed in TYPED.findall(text)}


def rows() -> Iterator[tuple[str, list[str], list[str]]]:
    """Every row of a table that a person wrote with reasons in it: where it is, the reasons, and the commands beside them."""
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        if not re.search(r"reference/|docs/decisions/|docs/spec|glossary", name):
            for line in without_code(page.read_text("utf-8")).splitlines():
                codes = [code for code in CODE.findall(line) if code in reasons.CATALOGUE]
                if line.startswith("|") and codes:
                    yield f"{name}: {line}", codes, TYPED.findall(line)


@pytest.mark.spec("ERR-1")
def test_a_command_beside_a_reason_is_one_that_the_catalogue_has_for_it() -> None:
    found = list(rows())
    assert len(found) > 60
    for where, codes, commands in found:
        allowed = {command for code in codes for command in advised(code)}
        for typed in commands:
            does = meant(typed)
            is_set = does[0] == "set" and FIXED_BY_SET.intersection(codes)
            assert does[0] in LOOKS or does[:2] == ("queue", "store") or is_set or does in allowed, where


def test_what_a_command_does_is_compared_and_not_what_it_is_done_to() -> None:
    assert meant('resume REQUEST --answer "…"') == meant('resume <request_id> --answer "yes"') == ("resume", "--answer")
    assert meant("ready REQUEST") == meant("set <ID> status=ready") == ("set", "status=ready")
    assert ("resume", "--update") in advised("MERGE_CONFLICT")
    assert ("accept", "--update") not in advised("MERGE_CONFLICT")


# --- the changelog ----------------------------------------------------------------------------------------------------


def test_the_newest_version_is_told_in_a_page_by_feature_and_a_line_for_each() -> None:
    newest = read("CHANGELOG.md").partition("\n## ")[2].partition("\n## ")[0]
    assert newest.startswith(tomllib.loads(read("pyproject.toml"))["project"]["version"])
    assert len(newest.split()) < 800
    groups = [group.splitlines() for group in newest.split("\n### ")[1:]]
    assert groups[0][0] == "Breaking changes"
    assert [line for group in groups for line in group[1:] if line and not line.startswith("- ")] == []
    assert [group[0] for group in groups[1:] if not 5 <= len([line for line in group[1:] if line]) <= 8] == []


# --- first screens ----------------------------------------------------------------------------------------------------


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert len(without_code(read("README.md")).split()) < 800


def test_what_a_registry_shows_leads_nowhere_that_only_the_repository_has() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    shown = read(project["readme"])
    links = re.findall(r"\]\(([^)]*)\)", shown)
    assert [link for link in links if not link.startswith("https://")] == []
    headline = re.search(r"^\*\*.+\*\*$", read("README.md"), re.MULTILINE)
    assert headline
    assert headline[0] in shown


def test_no_page_says_that_a_registry_has_the_package_before_it_has() -> None:
    """From a clone is what works today; the other line stands beside words that say when it will."""
    for name in ("README.md", "README.ja.md", "docs/install.md", "docs/ja/install.md"):
        text = read(name)
        assert "PyPI" in text, name
        assert text.index("uv tool install .") < text.index("uv tool install aiflow-local"), name
        assert not [block for block in fenced(text, "sh") if "install aiflow-local" in block.replace("uninstall", "")]


@pytest.mark.parametrize("language", ["en", "ja"])
def test_no_message_names_a_file_that_an_installation_lacks(language: str) -> None:
    for name in ("messages", "ui"):
        found = re.findall(r"\bdocs/\S+\.md\b", read(f"src/aiflow/messages/{name}.v1.{language}.json"))
        assert found == []
