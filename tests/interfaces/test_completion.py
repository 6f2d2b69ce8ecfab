"""Completion and the manual page (CLI): what a shell offers, each with its words, and what `man` shows."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from aiflow.cli.main import COMMANDS
from builders import write_request
from conftest import Program

pytestmark = pytest.mark.spec("CLI")
RUN = "RUN-20251214-010203-abcdef"
IDS = r"\b(?:option|cli|completion)\.[a-z_.]+"


def offered(aiflow: Program, words: str, shell: str = "bash", **env: str) -> list[str]:
    """What a shell is offered for the last of these words, line by line."""
    typed = words.split(" ")
    at = typed[-1] if shell == "fish" else str(len(typed) - 1)
    asked = {"_AIFLOW_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": at}
    return aiflow(env={**asked, **env}).stdout.splitlines()


@pytest.fixture
def shop(repository: Path) -> Path:
    write_request(repository, "RQ-1", status="ready")
    write_request(repository, "RQ-2", status="draft")
    folder = repository / "runs/RQ-1" / RUN
    folder.mkdir(parents=True)
    (folder / "stage.json").write_text('{"state": "NEEDS_INPUT"}')
    return repository


@pytest.mark.parametrize("command", ["show", "logs", "resume", "accept", "queue add", "clean"])
def test_the_ids_of_runs_are_offered_once_one_is_begun(shop: Path, aiflow: Program, command: str) -> None:
    assert offered(aiflow, f"aiflow {command} RUN-2025") == [f"plain,{RUN}"]
    assert offered(aiflow, f"aiflow {command} RQ-") == ["plain,RQ-1", "plain,RQ-2"]


def test_an_alias_is_completed_as_its_command(shop: Path, aiflow: Program) -> None:
    assert offered(aiflow, "aiflow ready RQ-") == ["plain,RQ-1", "plain,RQ-2"]
    assert offered(aiflow, "aiflow update RQ-1 --kee") == ["plain,--keep-changes"]
    assert offered(aiflow, "aiflow new Title -d RQ-") == ["plain,RQ-1", "plain,RQ-2"]


def test_commands_are_offered_once_and_with_their_words(shop: Path, aiflow: Program) -> None:
    assert offered(aiflow, "aiflow re", "fish") == [
        "plain,resume\tContinue a stopped run",
        "plain,retry-step\tRedo a step",
        "plain,replan\tRestart with a new plan",
        "plain,report\tShow a report",
    ]
    assert [line.split(",")[1] for line in offered(aiflow, "aiflow ")] == list(COMMANDS)
    assert [line.split(",")[1] for line in offered(aiflow, "aiflow queue r")] == ["runners"]


@pytest.mark.parametrize("language", ["en", "ja"])
def test_an_option_is_offered_with_its_meaning(shop: Path, aiflow: Program, language: str) -> None:
    told = "\n".join(offered(aiflow, "aiflow list --", "fish", AIFLOW_LANG=language))
    assert "--status" in told
    assert not re.search(IDS, told)
    assert ("Include done and archived requests." in told) == (language == "en")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_zsh_takes_the_script_without_a_configuration(aiflow: Program) -> None:
    script = aiflow("completion", "zsh").stdout + "\nprint -r -- $_comps[aiflow]\n"
    done = subprocess.run(["zsh", "-f"], input=script, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("_aiflow_completion\n", "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_takes_the_script(aiflow: Program) -> None:
    subprocess.run(["fish", "-N"], input=aiflow("completion", "fish").stdout, text=True, check=True)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_manual_page_names_every_command_and_option_in_words(aiflow: Program, language: str) -> None:
    page = aiflow("--lang", language, "completion", "man").stdout
    assert page.startswith('.TH AIFLOW 1 "" aiflow\n')
    for name in COMMANDS:
        assert f'.SS "aiflow {name.replace("-", chr(92) + "-")} ' in page or f'.SS "aiflow {name}"' in page, name
    assert "\\-\\-keep\\-changes" in page
    assert not re.search(IDS, page)


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_man_draws_the_page_without_a_warning(aiflow: Program) -> None:
    page = aiflow("completion", "man").stdout
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-Kutf8", "-wmac", "-Wbreak"],
        input=page,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert "Resume a stopped run where it left off." in done.stdout
