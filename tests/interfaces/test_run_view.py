"""A run in front of a person (CLI): the lines that scroll by, and what is drawn below them while nothing does."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.cli.terminal.layout import display_width
from aiflow.cli.terminal.lines import LinePart, moment_text, painted, parts_of, plain
from aiflow.cli.views.run_area import RunScene, draw_run
from aiflow.domain.request import UNCLEAN
from aiflow.domain.runs.quota import QuotaWait
from aiflow.messages import Texts
from auto_night import first_run
from e2e.bench import Bench
from interfaces.test_cli import in_terminal
from run_builders import at

RUNS = list(first_run())
COLOURS = [None, "red", "bright_black", "cyan"]


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Bench:
    """Give a repository with a scripted agent."""
    return Bench(repository, tmp_path / "bench")


def area(minute: int, language: str = "en", columns: int = 80, **scene: Any) -> list[str]:
    """The live area of a run that began to do something at minute 4, as text."""
    shown = RunScene(**{"run": RUNS[3], "since": at(4), "heard": at(4), **scene})
    return [plain(line) for line in draw_run(shown, Texts(language), at(minute), columns)]


@pytest.mark.spec("CLI")
def test_the_live_area_says_what_is_done_for_how_long_and_how_to_stop() -> None:
    assert area(4) == [
        "",
        "   00:00  S01 1/3  implementer  attempt 2  First",
        "          Ctrl-C: stop; you can resume it later",
    ]
    assert area(66)[1] == " 1:02:00  S01 1/3  implementer  attempt 2  First  no output for 1:02:00"
    assert area(66, heard=at(66))[1] == " 1:02:00  S01 1/3  implementer  attempt 2  First"
    assert area(66, heard=at(65))[1].endswith("  no output for 01:00")
    assert area(5, notice="Stopping …")[2] == "          Stopping …"


@pytest.mark.spec("CLI", "RUN-13")
def test_the_live_area_of_a_run_that_waits_for_a_quota_says_until_when() -> None:
    waiting = replace(RUNS[3], quota=QuotaWait(at(4), at(64)))
    until = moment_text(at(64))
    assert area(14, run=waiting)[1] == f"   10:00  waiting for the agent's quota until {until}"
    assert "利用枠を待機中" in area(14, "ja", run=waiting)[1]
    tried = replace(RUNS[3], quota=QuotaWait(at(4), at(64), is_over=True))
    assert "implementer" in area(65, run=tried)[1]


@pytest.mark.spec("CLI")
@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_live_area_fits_every_terminal(language: str, columns: int) -> None:
    for run in RUNS:
        for notice in (None, "停止しています。" * 20):
            lines = area(200, language, columns, run=run, notice=notice)
            assert max(map(display_width, lines)) < columns
            assert display_width(lines[-1]) < columns - 3
            assert not any(UNCLEAN.search(line) for line in lines)


@given(
    st.lists(st.tuples(st.text("ab 日本", min_size=1, max_size=5), st.sampled_from(COLOURS), st.booleans()), max_size=5)
)
def test_a_painted_line_can_be_taken_apart_again(pieces: list[tuple[str, str | None, bool]]) -> None:
    line = tuple(LinePart(*piece) for piece in pieces)
    assert painted(parts_of(painted(line))) == painted(line)
    assert plain(parts_of(painted(line))) == plain(line)


def test_what_else_commands_a_terminal_is_taken_out() -> None:
    assert parts_of("a\x1b[2Kb\x1b[1;31mc\x1b[md") == (
        LinePart("ab"),
        LinePart("c", "red", is_bold=True),
        LinePart("d"),
    )


@pytest.mark.spec("CLI")
@pytest.mark.parametrize(("language", "hint"), [("en", "Ctrl-C: stop"), ("ja", "Ctrl-C: 停止")])
def test_on_a_terminal_a_run_shows_its_time_and_leaves_only_its_lines(bench: Bench, language: str, hint: str) -> None:
    bench.agent.does("implementer", "print('I look around', flush=True); time.sleep(1.5); write('a', 'a'); done()")
    shown = in_terminal(bench.root, "run", "RQ-1", env={**bench.aiflow.environ, "AIFLOW_LANG": language})
    assert hint in shown
    assert re.search(r"00:0[1-9]  .*S01 1/1", click.unstyle(shown))
    # The area is taken away in the end: behind the last line that the agent wrote there is no more of it.
    assert hint not in shown[shown.index("AWAITING_ACCEPTANCE") :]
    assert click.style("        │ I look around", fg="bright_black") in shown


@pytest.mark.spec("CLI")
@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"TERM": "unknown"}, {"CI": "true"}])
def test_where_nothing_can_be_redrawn_there_are_only_lines(bench: Bench, environ: dict[str, str]) -> None:
    shown = in_terminal(bench.root, "run", "RQ-1", env={**bench.aiflow.environ, **environ})
    assert "Ctrl-C" not in shown
    assert "AWAITING_ACCEPTANCE" in shown
