"""Fixtures for every test: a program to call, a repository to call it in, no settings from outside."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis.core
import pytest
from hypothesis import HealthCheck, settings

import forked
import forms
import fresh_git
from dynamo import Dynamo, shared_endpoint
from waiting import slowness

# What these assert is explained, too, whichever test imports them first.
pytest.register_assert_rewrite("faults.accepting", "faults.kill_points", "faults.killing", "faults.racing")

# All of them is about the server, GitHub or real agents, and runs in `make test-contract`, which reads this line.
CONTRACT_FOLDERS = ("tests/github", "tests/interfaces/server", "tests/e2e/server", "tests/e2e/agents")

settings.register_profile("aiflow", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("aiflow")

# What the terminal or the CI service that runs the tests says of itself is nothing that a test asked for.
for _said_outside in ("CI", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES"):
    os.environ.pop(_said_outside, None)
os.environ["TERM"] = "xterm"
# A shell has what it starts in the background ignore Ctrl-C, and so would every program that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Nor is what it ignores (`nohup`, a shell's `&`): every process that the tests start would ignore it, too.
for _ignored_outside in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
    if signal.getsignal(_ignored_outside) is signal.SIG_IGN:
        _is_interrupt = _ignored_outside is signal.SIGINT
        signal.signal(_ignored_outside, signal.default_int_handler if _is_interrupt else signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Have everything that happens by chance begin with one seed, Hypothesis' examples too."""
    if hypothesis.core.global_force_seed is None:
        hypothesis.core.global_force_seed = forms.seed_of(config)  # type: ignore[assignment]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell every worker the seed."""
    node.workerinput[forms.SEED] = forms.seed_of(node.config)


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """Say how what failed is repeated."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        form = f" {forms.SOAK}=1" if forms.is_soak() else ""
        terminalreporter.write_line(f"To repeat what happened by chance: {forms.SEED}={forms.seed_of(config)}{form}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the long form has, mark the folders of the contract, and give every test its limit."""
    if not forms.is_soak():
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("soak")])
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
    for item in items:
        is_elsewhere = any(item.get_closest_marker(name) for name in ("faults", "timing", "browser"))
        if not is_elsewhere and item.nodeid.startswith(CONTRACT_FOLDERS):
            item.add_marker(pytest.mark.contract)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(forms.limit_of(item)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Measure seconds only where no other test runs beside."""
    if item.get_closest_marker("timing") and "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("asserts seconds: run it alone, with -n 0")


def pytest_collection_finish() -> None:
    """Have the thousands of tests and modules, which stay until the end, not looked through for rubbish again."""
    gc.freeze()


class Program:
    """Calls `aiflow` as its users do: as a process of its own."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        foreign = ("AIFLOW", "AWS_", "LC_", "LANG")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        # No store, runner or cache of the real user's is ever seen by a test.
        own = {"XDG_DATA_HOME": f"{cwd}.data", "XDG_CACHE_HOME": f"{cwd}.cache"}
        self.environ = {**kept, **own, "LANG": "C.UTF-8", "GIT_CONFIG_GLOBAL": os.devnull}

    def __call__(
        self, *args: str, code: int = 0, stdin: str = "", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Call the program and check its exit code."""
        environ = {**self.environ, **(env or {})}
        if forked.can_fork(environ):
            done = forked.call([*args], stdin, str(self.cwd), environ)
        else:
            done = subprocess.run(
                [sys.executable, "-m", "aiflow", *args],
                cwd=self.cwd,
                env=environ,
                input=stdin,
                capture_output=True,
                encoding="utf-8",
                timeout=60,
                check=False,
            )
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    def json(self, *args: str, code: int = 0, env: dict[str, str] | None = None) -> Any:
        """Call the program with --json and read its answer."""
        return json.loads(self(*args, "--json", code=code, env=env).stdout)


@contextlib.contextmanager
def somebody_else(folder: Path) -> Iterator[None]:
    """Act as a user without rights for a moment, if we are root: root may read and write everything."""
    if os.geteuid() != 0:
        yield
        return
    for each in (folder, *folder.parents):
        if len(each.parts) > 2 and each.owner() == "root":
            each.chmod(each.stat().st_mode | 0o555)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture(scope="session", autouse=True)
def _folders_of_nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the engine inside a test's own process out of the real user's folders, as `Program` is kept."""
    folder = tmp_path_factory.mktemp("nobody")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("STATE", "DATA", "CACHE"):
            patch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
        yield


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Give what this test leaves to chance: its own, and the same with the same seed."""
    return random.Random(f"{forms.seed_of(request.config)} {request.node.name}")


@pytest.fixture
def allowed(request: pytest.FixtureRequest) -> Callable[[float], float]:
    """Give how many seconds are allowed for what takes so many at most, as slow as this machine is at the moment."""
    assert request.node.get_closest_marker("timing"), "who asserts seconds runs alone"
    before = slowness()
    return lambda seconds: seconds * max(before, slowness())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make an empty git repository."""
    root = tmp_path / "repository"
    root.mkdir()
    fresh_git.make_repository(root)
    return root


@pytest.fixture
def aiflow(repository: Path) -> Program:
    """Give the program, called in an empty repository."""
    return Program(repository)


@pytest.fixture
def aiflow_in() -> Callable[[Path], Program]:
    """Give a way to call the program anywhere."""
    return Program


@pytest.fixture(scope="session")
def dynamo_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a real DynamoDB Local, the same for all workers."""
    with shared_endpoint(_shared(tmp_path_factory) / "dynamo") as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def dynalite_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a real dynalite, the same for all workers; it has one database for everybody."""
    with shared_endpoint(_shared(tmp_path_factory) / "dynalite", "dynalite") as endpoint:
        yield endpoint


def _shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all workers of this session have in common."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture
def dynamo(dynamo_endpoint: str) -> Dynamo:
    """Give an empty database of a real DynamoDB Local."""
    return Dynamo(dynamo_endpoint)
