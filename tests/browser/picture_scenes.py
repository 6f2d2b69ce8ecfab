"""The places of work that pictures are taken of, each with its pages."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import fresh_git
from browser.demo_bench import DemoBench, demo_up, serving
from browser.long_night import FAILED as STOPPED
from browser.long_night import FINISHED, night_in, path_to
from browser.long_night import MORNING as DAWN
from builders import write_request
from dynamo import Dynamo, shared_endpoint
from e2e.bench import Bench, git
from e2e.up import Up
from github.picture import live
from github.place import issue_place
from github.scene import Switch
from github.server import served
from real_engine import engine_at
from run_page_runs import MADE, REQUESTS, WORKED_ON, id_of, path_of, worked_on, write_log, write_run
from waiting import wait_until

HERE = Path(__file__).parent
# Name -> path, each in the scene that shows it best. `{run}` is the newest run of TODO-3, which is done.
MORNING = {
    "sign-in": "/sign-in",
    "sign-in-wrong": "/sign-in",
    "home": "/",
    "backlog": "/backlog",
    "backlog-graph": "/backlog/graph",
    "request": "/requests/TODO-4",
    "request-edit": "/requests/TODO-4/edit",
    "new": "/new",
    "run": "/requests/TODO-3/runs/{run}?step=S01&view=log",
    "run-diff": "/requests/TODO-3/runs/{run}?view=diff",
    "run-report": "/requests/TODO-3/runs/{run}?view=report",
    "run-plan": "/requests/TODO-3/runs/{run}?view=plan",
    "evening-none": "/auto/start",
    "queue": "/queue",
    "doctor": "/doctor",
    "activity": "/activity",
    "settings": "/settings",
    "agents": "/agents",
    "keys": "/keys",
    "keys-dialog": "/",
    "palette": "/",
    "not-found": "/requests/NOWHERE",
    "undo": "/requests/TODO-3",
    "backlog-found": "/backlog?s=found",
    "request-found": "/requests/TODO-9",
    "taken": "/",
}
FRESH = {
    "home-before": "/",
    "backlog-before": "/backlog",
    "request-before": "/requests/TODO-1",
    "request-waiting": "/requests/TODO-5",
    "request-missing": "/requests/TODO-7",
    "edit-conflict": "/requests/TODO-8/edit",
    "evening": "/",
    "drawer": "/",
    "no-script": "/requests/TODO-1",
    "new-version": "/",
    "lost": "/",
    "found": "/",
}
# The backlog is wrong, and what auto-run needs.
BROKEN = {
    "backlog-broken": "/backlog",
    "request-broken": "/requests/TODO-9",
    "evening-fail": "/auto/start",
    "doctor-fail": "/doctor",
}
QUIET = {"home-quiet": "/", "backlog-quiet": "/backlog"}
NIGHT = {
    "home-night": "/",
    "backlog-night": "/backlog",
    "activity-night": "/activity",
    "run-night": path_to(STOPPED),
    "send-back-lines": f"{path_to(FINISHED)}?view=diff",
    "bar-stopping": "/",
    "bar-choosing": "/backlog",
    "bar-waiting": "/",
}
BESIDE = {"switcher": "/", "no-htmx": "/backlog"}
ISSUES = {"issue": "/requests/GH-1", "home-issue": "/", "backlog-issue": "/backlog"}
EMPTY = {"home-first": "/", "activity-empty": "/activity"}
# A night of which a person has to accept each run.
BY_HAND = {
    "home-accept": "/",
    "request-accept": "/requests/TODO-2",
    "run-accept": "/requests/TODO-2/runs/{run}",
    "send-back": "/requests/TODO-2/send-back",
    "several": "/backlog",
}
# Auto-run is at TODO-6.
AUTO = {
    "home-auto": "/",
    "backlog-auto": "/backlog",
    "stop-auto": "/",
    "request-locked": "/requests/TODO-6",
    "run-auto": "/requests/TODO-6/runs/{run}",
    "cancel": "/requests/TODO-6/runs/{run}",
    "in-the-way": "/requests/TODO-2",
}
QUEUED = {"queue-tasks": "/queue"}
RUNNING = {
    "home-running": "/",
    "backlog-running": "/backlog",
    "log-search": path_of("tests_failed"),
    "force": path_of("too_large"),
    "run-gone": path_of("question"),
}
FAILED = """test_due (tests.test_order.OrderTest) ... FAIL
======================================================================
FAIL: test_due (tests.test_order.OrderTest)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "tests/test_order.py", line 10, in test_due
    self.assertEqual(shown, ["3", "2", "1"])
AssertionError: Lists differ: ['1', '3', '2'] != ['3', '2', '1']

Ran 8 tests in 0.247s
FAILED (failures=1)
"""
Scene = Iterator[tuple[Up, Mapping[str, str]]]


@contextlib.contextmanager
def _morning(place: Path, language: str) -> Scene:
    """Show a demo that was worked through."""
    with demo_up(place, language, is_worked=True) as up:
        title = {"en": "Close the file when it was read", "ja": "読み込んだファイルを閉じる"}[language]
        write_request(up.bench.root, "TODO-9", f"---\nstatus: draft\nfound_in: TODO-3\n---\n\n# {title}\n")
        yield up, _with_run(up, MORNING, "TODO-3")


@contextlib.contextmanager
def _fresh(place: Path, language: str) -> Scene:
    """Show a demo in which nothing has run yet."""
    with demo_up(place, language) as up:
        yield up, FRESH


@contextlib.contextmanager
def _empty(place: Path, language: str) -> Scene:
    """Show a project without a request."""
    with serving(EmptyBench(place, language)) as up:
        yield up, EMPTY


@contextlib.contextmanager
def _by_hand(place: Path, language: str) -> Scene:
    """Show a demo of which each run waits for somebody to accept it."""
    bench = DemoBench(place, language)
    bench.aiflow.environ["AIFLOW_ACCEPT"] = "manual"
    bench.aiflow("auto", "--json")
    with serving(bench) as up:
        yield up, _with_run(up, BY_HAND, "TODO-2")


@contextlib.contextmanager
def _auto(place: Path, language: str) -> Scene:
    """Show auto-run at work."""
    bench = DemoBench(place, language)
    bench.aiflow.environ["AIFLOW_DEMO_SECONDS"] = "3600"
    with serving(bench) as up:
        answer = up.call("POST", "/api/queue/run-next")
        assert answer.status == 202, answer
        wait_until(lambda: bench.run_ids("TODO-6") and bench.stage("TODO-6")["state"] == "IMPLEMENTING")
        yield up, _with_run(up, AUTO, "TODO-6")


@contextlib.contextmanager
def _queued(place: Path, language: str) -> Scene:
    """Show tasks that wait for a runner."""
    bench = DemoBench(place, language)
    with shared_endpoint(place.parent / "store") as endpoint:
        bench.aiflow.environ |= {**Dynamo(endpoint).environ, "AIFLOW_SERVER_RUNNER": "never"}
        with serving(bench) as up:
            for request_id in ("TODO-6", "TODO-2"):
                assert up.call("POST", "/api/tasks", {"request_id": request_id}).status == 201
            yield up, QUEUED


@contextlib.contextmanager
def _runs(place: Path, language: str) -> Scene:
    """Show a run in every state, and the pages around one that is at work."""
    with demo_up(place, language) as up:
        root, engine = up.bench.root, engine_at(up.bench.root)
        for name in WORKED_ON:
            write_run(root, name)
        with worked_on(root, *WORKED_ON):  # the server goes on with what nobody holds, where nobody is at work
            for name in MADE:
                run = engine.runs.load(REQUESTS[name], id_of(name)) if name in WORKED_ON else write_run(root, name)
                assert run is not None
                for number in (1, 2):
                    write_log(engine, run, number, f"implementer S0{number} attempt 1", "Read a.py\nEdit a.py\n")
                    write_log(engine, run, number, "unit tests: python3 -m unittest -q", FAILED)
            paths = {f"run-{name}": path_of(name) for name in MADE}
            yield up, {**paths, **RUNNING, "replan": f"{path_of('tests_failed')}/replan"}


@contextlib.contextmanager
def _broken(place: Path, language: str) -> Scene:
    """Show a demo with a file that nobody can read, and an agent that is not there."""
    bench = DemoBench(place, language)
    (bench.root / "requests/TODO-9.md").write_text("---\npriority: P7\nstatus: raedy\n---\n\n# ?\n")
    settings = bench.root / "aiflow.toml"
    settings.write_text(settings.read_text().replace('kind = "demo"', 'kind = "command"\nargv = ["my-agent"]'))
    with serving(bench) as up:
        yield up, BROKEN


@contextlib.contextmanager
def _quiet(place: Path, language: str) -> Scene:
    """Show a night after which nothing waits."""
    bench = DemoBench(place, language)
    for number in (4, 5, 7):
        (bench.root / f"requests/TODO-{number}.md").unlink()
    git(bench.root, "commit", "-qam", "Ask nothing")
    bench.aiflow("auto", "--json")
    with serving(bench) as up:
        yield up, QUIET


@contextlib.contextmanager
def _night(place: Path, language: str) -> Scene:
    """Show a night at its end, in one moment that does not pass."""
    bench = EmptyBench(place, language)
    bench.program = (str(HERE / "frozen.py"), DAWN.isoformat())
    with serving(bench) as up, night_in(bench.root, language):
        yield up, NIGHT


@contextlib.contextmanager
def _beside(place: Path, language: str) -> Scene:
    """Show a server among others, without the library that updates a page."""
    bench, second = DemoBench(place, language), DemoBench(place / "second", language, name="shop")
    second.aiflow.environ["XDG_DATA_HOME"] = bench.aiflow.environ["XDG_DATA_HOME"]
    bench.program = (str(HERE / "without_htmx.py"),)
    with serving(second) as other, serving(bench) as up:
        yield up, BESIDE
        other.asks(signal.SIGINT)  # whose server is the last one's leaves no note behind
        other.process.communicate()


@contextlib.contextmanager
def _issues(place: Path, language: str) -> Scene:
    """Show issues of GitHub: one whose life is over."""
    root = place / "todo"
    root.mkdir(parents=True)
    fresh_git.make_repository(root)
    bench, switch = Bench(root, place), Switch()
    bench.aiflow.environ["AIFLOW_LANG"] = language
    with served(switch) as url, pytest.MonkeyPatch.context() as patch, issue_place(bench, patch, None, url) as made:
        switch.api = made.api
        live(made, language)
        with serving(bench) as up:
            yield up, ISSUES


# Each scene with the names of its pictures.
SCENES: Mapping[Callable[[Path, str], contextlib.AbstractContextManager[tuple[Up, Mapping[str, str]]]], list[str]] = {
    _morning: [*MORNING],
    _fresh: [*FRESH],
    _empty: [*EMPTY],
    _broken: [*BROKEN],
    _quiet: [*QUIET],
    _night: [*NIGHT],
    _beside: [*BESIDE],
    _issues: [*ISSUES],
    _by_hand: [*BY_HAND],
    _auto: [*AUTO],
    _queued: [*QUEUED],
    _runs: [*(f"run-{name}" for name in MADE), *RUNNING, "replan"],
}


def _with_run(up: Up, pages: Mapping[str, str], request_id: str) -> dict[str, str]:
    """Name the newest run of a request in the paths."""
    run = up.bench.run_ids(request_id)[-1]
    return {name: path.format(run=run) for name, path in pages.items()}


class EmptyBench(DemoBench):
    """A project that was begun, with no request in it."""

    def __init__(self, folder: Path, language: str) -> None:
        """Make it."""
        super().__init__(folder, language)
        for path in (self.root / "requests").glob("*.md"):
            path.unlink()
        git(self.root, "commit", "-qam", "Nothing to do")
