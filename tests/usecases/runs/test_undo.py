"""Undoing an acceptance (REQ-6, GIT-3): what keeps the work in, and what is left as it was then."""

from __future__ import annotations

from typing import Any

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.lifecycle import RunState
from aiflow.domain.programs import End, Ended
from aiflow.domain.request import RequestId
from aiflow.domain.runs.run import Run
from aiflow.domain.runs.worktree import Place
from aiflow.errors import ConflictError
from aiflow.settings import Source, settle
from aiflow.usecases.backlog.edit import edit_request
from aiflow.usecases.engine import Engine
from aiflow.usecases.runs.accept import accept_run, send_back
from aiflow.usecases.runs.find import newest_run
from aiflow.usecases.runs.start import start_run
from aiflow.usecases.runs.undo import undo_acceptance
from memory_engine import MemoryCheckout, MemoryProcess, obliging

pytestmark = pytest.mark.spec("REQ-6", "GIT-3")

ONE, FILE = RequestId("RQ-1"), "RQ-1.txt"


class KilledError(BaseException):
    """The process is killed."""


class _Dying:
    """A port whose process is killed right behind the move of the base."""

    def __init__(self, port: Any) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def move_base(self, *args: Any) -> bool:
        self._port.move_base(*args)
        raise KilledError


def _dying(name: str, port: Any) -> Any:
    return _Dying(port) if name == "merging" else port


class Bench:
    """A checkout with an accepted run, and tests that fail without its work if `needs_work`."""

    def __init__(self) -> None:
        self.checkout = MemoryCheckout(settings=settle({Source.FILE: {"tests.unit": "make test"}}))
        self.checkout.workshop.run_shell = self._shell
        self.checkout.add(ONE)
        self.tested: list[str] = []
        self.needs_work = False
        self.accepted = accept_run(self.engine, start_run(self.engine, ONE))
        assert self.accepted.accepted_as == self.checkout.base
        self.tested.clear()

    @property
    def engine(self) -> Engine:
        return MemoryProcess(self.checkout, 7, PlayedTime(), obliging(self.checkout)).engine()

    @property
    def run(self) -> Run:
        found = newest_run(self.engine, ONE)
        assert found is not None
        return found

    def commit(self, **files: bytes) -> str:
        repository, base = self.checkout.repository, self.checkout.base
        tree = repository.keep_tree({**repository.files_of(base), **{f"{name}.txt": it for name, it in files.items()}})
        repository.refs["refs/heads/main"] = repository.make_commit(tree, (base,), "A person's words\n")
        return self.checkout.base

    def refused(self, run: Run) -> ConflictError:
        """Undo in vain: nothing has moved."""
        base, status = self.checkout.base, self.checkout.status(ONE)
        with pytest.raises(ConflictError) as told:
            undo_acceptance(self.engine, run)
        assert (self.checkout.base, self.checkout.status(ONE)) == (base, status)
        return told.value

    def _shell(self, _command: str, place: Place, *_: object) -> Ended:
        has_work = FILE in self.checkout.repository.worktrees[place.path].files
        self.tested.append("with" if has_work else "without")
        return Ended(End.EXITED, int(self.needs_work and not has_work))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_base_is_tested_without_the_work_before_it_moves(bench: Bench) -> None:
    bench.needs_work = True
    assert bench.refused(bench.run).reason_code == "UNDO_TESTS_FAILED"
    assert (bench.tested, bench.run.accepted_as) == (["without"], bench.accepted.accepted_as)
    bench.needs_work = False
    undone = undo_acceptance(bench.engine, bench.run)
    assert (undone.state, undone.accepted_as, bench.tested) == (RunState.DONE, None, ["without"] * 2)
    assert FILE not in bench.checkout.repository.files_of(bench.checkout.base)


def test_the_branch_is_there_again_with_the_work_and_undoing_twice_is_once(bench: Bench) -> None:
    ref = f"refs/heads/{bench.run.place.branch}"
    del bench.checkout.repository.refs[ref]
    undo_acceptance(bench.engine, bench.run)
    base = bench.checkout.base
    assert FILE in bench.checkout.repository.files_of(ref)
    assert undo_acceptance(bench.engine, bench.run).accepted_as is None
    assert (bench.checkout.base, bench.checkout.status(ONE)) == (base, "blocked")


def test_what_a_newer_run_came_behind_is_not_undone(bench: Bench) -> None:
    engine = bench.engine
    edit_request(ONE, "status", Change("ready"), engine.editor, (engine.journal, engine.time.now))
    newer = start_run(bench.engine, ONE)
    error = bench.refused(bench.accepted)
    assert error.reason_code == "NOT_UNDOABLE"
    assert newer.run_id in str(error.context["detail"])


def test_later_changes_of_the_same_file_are_named(bench: Bench) -> None:
    bench.commit(other=b"x\n")
    bench.commit(**{"RQ-1": b"theirs\n"})
    error = bench.refused(bench.run)
    assert (error.reason_code, error.context["files"]) == ("UNDO_CONFLICT", FILE)
    assert error.context["later"] == "“A person's words”"
    assert bench.run.history[-1].event == "KEPT"


@pytest.mark.parametrize("command", ["undo", "send-back", "accept"])
def test_what_a_kill_left_unrecorded_is_written_down_by_whoever_decides_next(bench: Bench, command: str) -> None:
    process = MemoryProcess(bench.checkout, 7, PlayedTime(), obliging(bench.checkout), wrap=_dying)
    with pytest.raises(KilledError):
        undo_acceptance(process.engine(), bench.run)
    assert (bench.run.accepted_as, bench.checkout.status(ONE)) == (bench.accepted.accepted_as, "done")
    base = bench.checkout.base
    if command == "undo":
        undo_acceptance(bench.engine, bench.run)
    elif command == "send-back":
        send_back(bench.engine, bench.run, "Not like this.")
    else:
        accept_run(bench.engine, bench.run)
    assert [line.event for line in bench.run.history].count("UNDONE") == 1
    assert bench.checkout.status(ONE) == {"undo": "blocked", "send-back": "ready", "accept": "done"}[command]
    assert (bench.checkout.base == base) == (command != "accept")
    assert (FILE in bench.checkout.repository.files_of(bench.checkout.base)) == (command == "accept")
