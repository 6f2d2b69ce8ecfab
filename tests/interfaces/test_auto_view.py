"""Auto-run in front of a person (AUT-1, AUT-3): what scrolls by, what is drawn below it, what is there in the morning."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.cli.terminal.layout import display_width
from aiflow.cli.terminal.lines import LinePart, clock_text, duration_text, fitted, plain, width_of
from aiflow.cli.views.auto import AutoView
from aiflow.cli.views.auto_area import AutoScene, draw, last_line
from aiflow.cli.views.auto_summary import summary_lines
from aiflow.domain.auto.session import AutoSession, AutoStatus, Upcoming
from aiflow.domain.auto.stopping import Limits
from aiflow.domain.auto.summary import Summary
from aiflow.domain.health import Finding, Health
from aiflow.domain.lifecycle import AutoRunState
from aiflow.domain.next_action import shell
from aiflow.domain.request import UNCLEAN
from aiflow.messages import Texts
from auto_night import BEGUN, FIRST, LIMITS, SECOND, THIRD, clock, first_run, play, statuses, summary
from run_builders import at

TESTS = Path(__file__).parents[1]
LANGUAGES = ("en", "ja")
AREAS = statuses()


def area(status: AutoStatus, language: str = "en", columns: int = 80, **scene: Any) -> list[str]:
    """The live area as text."""
    shown = AutoScene(status, request_since=at(1), doing_since=at(4), limits=LIMITS, **scene)
    return [plain(line) for line in draw(shown, Texts(language), at(125), columns)]


# --- the live area ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("AUT-1", "CLI")
@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", AREAS)
def test_the_live_area_fits_every_terminal(name: str, language: str, columns: int) -> None:
    for run in (None, *first_run()):
        for notice in (None, "Stops after this run, and this is a rather long way to say it. " * 2):
            lines = area(AREAS[name], language, columns, run=run, output="出力" * 100, notice=notice)
            # A full line may begin the next one; what the terminal shows for Ctrl-C has room behind the last.
            assert max(map(display_width, lines)) < columns
            assert display_width(lines[-1]) < columns - 3
            assert not any(UNCLEAN.search(line) for line in lines)


@pytest.mark.spec("AUT-1")
def test_the_live_area_says_what_runs_since_when_and_what_comes_next() -> None:
    run = list(first_run())[3]
    assert area(AREAS["running"], run=run, output="pytest -q", columns=90) == [
        "",
        " 2:04:00  ▶ RQ-20251214-008  ログイン画面のパスワード再設定リンクが切れているのを直し、…",
        " 2:01:00    S01 1/3  implementer  attempt 2  First",
        "            pytest -q",
        " 2:05:00  0 done, 0 waiting, 0 failed",
        "          limits: 0/10 runs, 480 min, $0.00/$5.00",
        "    next  RQ-20251214-009  Add a totals row to the CSV export, with tests fo…  and 6 more",
        "          Ctrl-C: stop after this run",
    ]
    assert area(AREAS["last"], run=run)[4:7] == [
        " 2:05:00  0 done, 2 waiting, 1 failed",
        "          limits: 0/10 runs, 480 min, $1.50/$5.00",
        "    next  nothing else so far",
    ]
    assert not any(line.startswith("    next") for line in area(AREAS["watch"]))


@pytest.mark.spec("AUT-1")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("selecting", "Choosing the next request …"),
        ("watch", "Waiting for new requests …"),
        ("quota", "Waiting: The agent's usage limit is reached"),
        ("other", "Waiting for another run to end: RUN-20260102-030405-bbbbbb, pid 7"),
        ("stopping", "Stops after this run. Ctrl-C again cancels it."),
        ("cancelling", "Stopping: the run is being cancelled …"),
    ],
)
def test_the_live_area_says_why_nothing_begins(name: str, why: str) -> None:
    assert why in "\n".join(area(AREAS[name]))
    assert "私は停止する" in area(AREAS[name], notice="私は停止する")[-1]


def test_before_anything_is_known_there_is_nothing_to_show() -> None:
    assert draw(AutoScene(), Texts("en"), at(0), 80) == []


@given(st.text(max_size=40), st.text(max_size=40), st.integers(30, 120))
def test_no_title_and_no_output_tears_the_area(title: str, output: str, columns: int) -> None:
    status = AutoStatus(BEGUN, Upcoming("RQ-1", title), (Upcoming("RQ-2", title),), 3)
    shown = last_line(output.encode("utf-8", "surrogatepass")) or ""
    for line in area(status, columns=columns, output=shown, notice=title):
        assert display_width(line) < columns
        assert not UNCLEAN.search(line)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one\ntwo\n\n  \n", "two"),
        (b"=== implementer, attempt 1\n", None),
        (b"work\n=== qa\n", "work"),
        (b"10%\r50%\r100%\r\n", "100%"),
        (b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07and \x1b[2Jmore\x1b(B\n", "red and more"),
        (b"\xff\xfe broken", "\ufffd\ufffd broken"),
        (b"", None),
    ],
)
def test_the_last_line_of_an_agent_is_found(data: bytes, expected: str | None) -> None:
    assert last_line(data) == expected


@given(st.lists(st.text(st.sampled_from("ab日本…é"), max_size=12), max_size=4), st.integers(1, 30))
def test_a_line_of_parts_is_cut_and_marked(texts: list[str], width: int) -> None:
    line = tuple(map(LinePart, texts))
    shown = fitted(line, width)
    assert width_of(shown) <= width
    assert shown == line if width_of(line) <= width else plain(shown).endswith("…")


def test_times_are_said_as_people_say_them() -> None:
    texts = {language: Texts(language) for language in LANGUAGES}
    spans = [at(minutes) - at(0) for minutes in (-1, 0.5, 59.99, 60, 60 * 26 + 3)]
    assert [clock_text(span) for span in spans] == ["00:00", "00:30", "59:59", "1:00:00", "26:03:00"]
    assert [duration_text(span, texts["en"]) for span in spans] == ["0 s", "30 s", "59 min", "1 h 0 min", "26 h 3 min"]
    assert duration_text(spans[-1], texts["ja"]) == "26時間3分"


# --- line by line ----------------------------------------------------------------------------------------------------


def stamped(minutes: float, text: str) -> str:
    """A line of a log."""
    return f"{at(minutes).astimezone():%Y-%m-%d %H:%M:%S}  {text}"


@pytest.mark.spec("AUT-1", "AUT-4", "CLI")
def test_a_log_has_one_line_with_its_time_for_everything_that_happened(capsys: pytest.CaptureFixture[str]) -> None:
    with AutoView(Texts("en"), is_quiet=False, limits=LIMITS, clock=clock(5)) as view:
        play(view)
    shown = capsys.readouterr()
    assert shown.err == ""
    lines, _, _ = shown.out.partition("\n\n")
    third = "Tidy \ufffd[2J\ufffd]0;mine\ufffd the\ufffd\ufffdsettings\ufffd page"
    assert lines.splitlines() == [
        stamped(5, "Auto-run started.  limits: 10 runs, 480 min, $5.00"),
        stamped(5, f"Interrupted when auto-run last ended: RQ-3  {third}"),
        stamped(5, f"▶ RQ-20251214-008  {FIRST.title}"),
        stamped(2, "  Steps planned: 3"),
        stamped(30, "  S01 UNIT_TEST_FAILED: trying again"),
        stamped(3, "  S01 done (1/3)  First"),
        stamped(4, "  S02 done (2/3)  Second"),
        stamped(20, "  S03 done (3/3)  Third | last"),
        stamped(5, "✓ RQ-20251214-008  done, waits for acceptance (0 s)"),
        stamped(5, f"▶ RQ-20251214-009  {SECOND.title}"),
        stamped(5, "! RQ-20251214-009  waits for you (0 s)  NEEDS_CLARIFICATION: The agent has a question"),
        stamped(5, "✗ RQ-3  could not be started  WORKTREE_DIRTY: There are uncommitted changes"),
    ]


@pytest.mark.spec("AUT-1", "AUT-4")
def test_waiting_and_stopping_are_told_once_and_an_earlier_process_s_results_not_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view = AutoView(Texts("en"), is_quiet=False, clock=clock())
    for name in ("watch", "watch", "quota", "quota", "stopping", "stopping", "cancelling", "stopped"):
        session = replace(AREAS[name].session, spent=at(90) - at(0), runs=2)
        view.observe_auto(replace(AREAS[name], session=session))
    view.observe_auto(replace(AREAS["stopping"], running=None))
    assert [line[21:] for line in capsys.readouterr().out.splitlines()] == [
        "Auto-run continues. Its runs so far: 2, in 1 h 30 min.",
        "Waiting for new requests …",
        f"▶ {FIRST.request_id}  {FIRST.title}",
        "Waiting: The agent's usage limit is reached",
        "Stops after this run. Ctrl-C again cancels it.",
        "Stopping: the run is being cancelled …",
        "Stopping …",
    ]


def test_a_quiet_view_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with AutoView(Texts("en"), is_quiet=True) as view:
        play(view)
    assert capsys.readouterr() == ("", "")


# --- the morning -----------------------------------------------------------------------------------------------------


def morning(shown: Summary, language: str = "en", columns: int | None = None) -> list[str]:
    return [plain(line) for line in summary_lines(shown, Texts(language), at(500), columns)]


@pytest.mark.spec("AUT-3", "CLI")
@pytest.mark.parametrize("columns", [40, 80, 200, None])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_summary_fits_and_names_everything(language: str, columns: int | None) -> None:
    lines = morning(summary(), language, columns)
    commands = [line for line in lines if line.startswith("    aiflow ")]
    # A command is copied whole, whatever the width.
    assert commands == [f"    aiflow accept {FIRST.request_id}", f'    aiflow resume {SECOND.request_id} --answer "…"']
    assert columns is None or all(display_width(line) <= columns for line in lines if line not in commands)
    assert not any(UNCLEAN.search(line) for line in lines)
    text = "\n".join(lines)
    for name in (FIRST.request_id, SECOND.request_id, THIRD.request_id, "RQ-7", "RQ-20251214-011", "RQ-12"):
        assert name in text
    message = Texts(language).message("AUTO_FAILED_LIMIT", {})
    said = re.sub(r"\s", "", text)
    parts = (message.title, message.summary, *(advice.typed for advice in message.actions))
    assert all(re.sub(r"\s", "", part) in said for part in parts)


@pytest.mark.spec("AUT-3")
def test_the_summary_says_why_it_ended_what_is_done_and_what_waits() -> None:
    lines = morning(summary(), columns=100)
    assert lines[1] == "AUTO_FAILED_LIMIT: Auto-run stopped: a run failed"
    assert lines[lines.index("Runs: 2   Time: 3 h 12 min   cost $1.50") :] == [
        "Runs: 2   Time: 3 h 12 min   cost $1.50",
        "",
        "Done (2)",
        "  RQ-20251214-008  ログイン画面のパスワード再設定リンクが切れているのを直し、テストを足す（全ロケー…",
        "  RQ-7             Seven",
        "",
        "Waiting for you (3)",
        "  RQ-20251214-008  ログイン画面のパスワード再設定リンクが切れているのを直し、テストを足す（全ロケー…",
        "    AWAITING_ACCEPTANCE: Finished.",
        "    aiflow accept RQ-20251214-008",
        "  RQ-20251214-009  Add a totals row to the CSV export, with tests for every locale [bold]we[/bold] …",
        "    Question: Which time zone?",
        "    UTC or the user's own? どちらのタイムゾーンで出力しますか、どちらも考えられます。",
        "      1. UTC",
        "      2. The user's own",
        '    aiflow resume RQ-20251214-009 --answer "…"',
        "  RQ-3  Tidy \ufffd[2J\ufffd]0;mine\ufffd the\ufffd\ufffdsettings\ufffd page",
        "    WORKTREE_DIRTY: There are changes.",
        "",
        "Never reached, and why (2)",
        "  RQ-20251214-011  Add a totals row to the CSV export, wit…  depends_on: RQ-20251214-009 is not done",
        "  RQ-12            Tidy \ufffd[2J\ufffd]0;mine\ufffd the\ufffd\ufffdsettings\ufffd page    auto-run had stopped before",
    ]


@pytest.mark.spec("AUT-1", "AUT-3")
def test_what_the_doctor_found_is_said_with_what_mends_it() -> None:
    fix = shell("git config …")
    found = Finding("identity", Health.FAIL, "GIT_IDENTITY_MISSING", "identity.fail", (), ("detail",), fix)
    session = replace(BEGUN, state=AutoRunState.STOPPED, reason_code="DOCTOR_FAILED")
    assert morning(Summary(session, findings=(found,)), columns=80)[1:6] == [
        "DOCTOR_FAILED: The doctor found a problem",
        "  The check before every run ended with FAIL, so nothing was started or resumed.",
        "  FAIL  GIT_IDENTITY_MISSING: Git has no name and e-mail address for commits",
        "        detail",
        "        git config …",
    ]


@pytest.mark.spec("AUT-3")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_night_in_which_nothing_could_begin_says_how_something_can(language: str) -> None:
    session = AutoSession(at(0), state=AutoRunState.COMPLETED, reason_code="AUTO_NOTHING_RUNNABLE", changed_at=at(0))
    nothing = "\n".join(morning(Summary(session), language, 80))
    assert "aiflow new " in nothing
    assert "status=ready" in nothing
    none_could = "\n".join(morning(Summary(session, unreached=summary().unreached), language, 80))
    assert "aiflow why <ID>" in none_could
    assert "RQ-20251214-011" in none_could
    # Whoever did not write down why it ended leaves that nothing more was to be done.
    assert morning(Summary(replace(session, reason_code=None)), language)[1] == morning(Summary(session), language)[1]


# --- a real terminal, a pipe, a reader that leaves -------------------------------------------------------------------


@contextmanager
def night(how: str = "quick", language: str = "en", columns: int = 80, **env: str) -> Iterator[tuple[Any, int]]:
    """The night in a terminal of its own; gives the process and the terminal's other end."""
    main, terminal = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(TESTS), "COLUMNS": str(columns), **env}
    command = [sys.executable, "-X", "utf8", "-m", "auto_night", how, language]
    process = subprocess.Popen(command, env=environ, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE)
    os.close(terminal)
    try:
        yield process, main
    finally:
        process.kill()
        process.communicate()
        os.close(main)


def read_all(main: int) -> str:
    """Read a terminal until nobody writes to it any more."""
    shown = b""
    while select.select([main], [], [], 20)[0]:
        try:
            chunk = os.read(main, 65536)
        except OSError:
            break
        shown += chunk
    return shown.decode()


def facts_of(process: Any) -> dict[str, Any]:
    """What the night said of itself, which is all that it may say on its error stream."""
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    facts: dict[str, Any] = json.loads(error)
    return facts


def drawn(data: str, columns: int) -> tuple[list[str], list[str]]:
    """Do what a terminal does: return what is left at the end, and every line that was ever there."""
    rows: list[str] = [""]
    seen: list[str] = []
    row, is_clear = 0, False
    for mark, text in re.findall(r"(\x1b\[[0-9;?]*[a-zA-Z]|\r|\n)|([^\x1b\r\n]+)", data):
        if mark == "\n":
            row += 1
            rows += [""] * (row + 1 - len(rows))
        elif mark == "\r":
            is_clear = True
        elif mark.endswith("K"):
            rows[row] = ""
        elif mark.endswith("A"):
            row -= int(mark[2:-1] or 1)
        elif text:
            rows[row] = text if is_clear else rows[row] + text
            seen.append(rows[row])
            is_clear = False
            assert row >= 0
    assert all(display_width(line) <= columns for line in seen)
    return rows, seen


@pytest.mark.spec("AUT-1", "CLI")
@pytest.mark.parametrize(("columns", "language"), [(40, "ja"), (80, "en"), (200, "ja")])
def test_on_a_terminal_lines_scroll_above_an_area_that_is_gone_at_the_end(columns: int, language: str) -> None:
    with night("slow", language, columns) as (process, main):
        data = read_all(main)
        assert facts_of(process)["rich"]
    rows, seen = drawn(data.replace("\r\n", "\n"), columns + 10)
    left = "\n".join(rows)
    assert "\x1b[1m" in data  # colours
    assert "\x1b[31m\x1b[0m" not in data
    assert "\x1b]0" not in data
    assert "\x1b[2J" not in data
    assert "Ctrl-C" not in left
    assert "hereby stopping" not in left
    assert any("hereby stopping" in line for line in seen)
    assert any("[red]README[/red]" in line for line in seen)
    assert left.count(f"▶ {FIRST.request_id}") == 1
    assert left.count("said by somebody else") == 8
    assert Texts(language).message("AUTO_FAILED_LIMIT", {}).title[:12] in left


@pytest.mark.spec("CLI", "PRF-6")
@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"CI": "true"}])
def test_a_terminal_that_cannot_be_redrawn_gets_plain_lines(env: dict[str, str]) -> None:
    with night(columns=80, **env) as (process, main):
        data = read_all(main)
        assert not facts_of(process)["rich"]
    assert "\x1b" not in data
    assert "▶ RQ-20251214-008" in data


@pytest.mark.spec("CLI")
def test_without_colours_the_area_is_drawn_all_the_same() -> None:
    with night("slow", NO_COLOR="1") as (process, main):
        data = read_all(main)
        facts_of(process)
    assert re.search(r"\x1b\[[0-9;]*m", data) is None
    assert "\x1b[1A" in data


@pytest.mark.faults
@pytest.mark.spec("CLI")
def test_a_terminal_that_is_closed_does_not_touch_the_auto_run() -> None:
    with night("slow") as (process, main):
        os.read(main, 100)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, main)
        os.close(nothing)
        facts_of(process)


@pytest.mark.timing
@pytest.mark.spec("CLI")
def test_a_terminal_that_is_held_does_not_hold_up_the_auto_run(allowed: Callable[[float], float]) -> None:
    with night("long") as (process, _):
        facts = facts_of(process)
    # Nobody reads what was written. Waiting for that would take for ever; being busy elsewhere takes some seconds.
    assert facts["told"] < allowed(30)
    assert facts["total"] < allowed(40)


@pytest.mark.spec("CLI", "PRF-6")
def test_in_a_pipe_there_are_only_lines_until_the_reader_leaves() -> None:
    command = [sys.executable, "-X", "utf8", "-m", "auto_night", "slow", "ja"]
    environ = {**os.environ, "PYTHONPATH": str(TESTS), "TERM": "xterm-256color"}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    first = process.stdout.readline().decode()
    assert "Auto-run を開始しました" in first
    assert "\x1b" not in first
    process.stdout.close()
    assert process.stderr is not None
    error = process.stderr.read().decode()
    assert process.wait(60) == 0
    process.stderr.close()
    told = error.splitlines()
    assert set(told[:-1]) == {"hereby stopping"}
    assert json.loads(told[-1])["rich"] is False


def test_limits_that_are_not_set_are_not_named() -> None:
    shown = draw(AutoScene(AREAS["running"], limits=Limits()), Texts("en"), at(1), 80)
    assert not any("limit" in plain(line) for line in shown)
