"""A run that follows one that was sent back (REQ-6a), killed at every call of a port, and what leads to it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.lifecycle import RunState
from aiflow.domain.runs.resume import ResumeMode
from aiflow.domain.runs.run import Run
from aiflow.usecases.runs.accept import accept_run, send_back
from aiflow.usecases.runs.start import start_run
from aiflow.usecases.runs.undo import undo_acceptance
from forms import rounds
from memory_engine import MemoryCheckout, look, plan
from simulation.kill_cases import (
    Case,
    enumerate_kills,
    newest_of,
    on_newest,
    ready_bench,
    resuming,
    start_one,
    states_of,
)
from simulation.kills import ONE, Bench, Script

WORDS = "Not like this."
SHARED = f"{ONE}.txt"


# --- what was there before -------------------------------------------------------------------------------------------


def _well_informed(checkout: MemoryCheckout, question: str = "") -> Script:
    """Give agents that insist on knowing of the run before, and leave a file for each run."""

    def script(call: AgentCall, *_: Any) -> AgentReply:
        run = checkout.runs.runs[ONE, call.run_id] if call.brief.id == ONE else None
        if run is not None and (run.continues or run.replaces):
            assert call.former is not None, run.run_id
            assert any(WORDS in told.summary for told in run.feedback), run.feedback
        if call.role is Role.PLANNER:
            return plan("S01")
        if call.role is Role.QA:
            look(call)
            return AgentReply(b'{"verdict":"pass","findings":[]}')
        files = checkout.repository.worktrees[call.cwd].files
        files[f"{call.brief.id}.txt"] = files[f"{call.run_id}.txt"] = call.run_id.encode()
        if question:
            return AgentReply(f'{{"status":"needs_input","question":"{question}"}}'.encode())
        return AgentReply(b'{"status":"done"}')

    return script


def _done(**_: object) -> Bench:
    bench = ready_bench()._replace(agents=_well_informed)
    start_run(bench.engine(_well_informed(bench.checkout)), ONE)
    return bench


def _move_base(bench: Bench, *names: str) -> None:
    repository = bench.checkout.repository
    files = {**repository.files_of(bench.checkout.base), **dict.fromkeys(names, b"theirs\n")}
    commit = repository.make_commit(repository.keep_tree(files), (bench.checkout.base,), "By hand\n")
    repository.refs["refs/heads/main"] = commit


def _sent_back(*moved: str, is_dropped: bool = False) -> Callable[[], Bench]:
    """Have a run sent back, and a base that a person has changed these files of since."""

    def prepare() -> Bench:
        bench = _done()
        send_back(bench.engine(), newest_of(bench), WORDS, is_dropped=is_dropped)
        if moved:
            _move_base(bench, *moved)
        return bench

    return prepare


def _undone() -> Bench:
    bench = _done()
    accept_run(bench.engine(), newest_of(bench))
    undo_acceptance(bench.engine(), newest_of(bench))
    assert newest_of(bench).run_id + ".txt" not in bench.checkout.repository.files_of(bench.checkout.base)
    return bench


def _undone_and_sent_back() -> Bench:
    bench = _undone()
    send_back(bench.engine(), newest_of(bench), WORDS)
    return bench


def _continued_and_asked() -> Bench:
    """Have a run that continues another, and stopped with a question."""
    bench = _sent_back("other.txt")()
    run = start_run(bench.engine(_well_informed(bench.checkout, "Which one?")), ONE)
    assert (run.state, run.continues is not None) == (RunState.NEEDS_INPUT, True)
    return bench


# --- what must have come of it ---------------------------------------------------------------------------------------


def _runs(bench: Bench) -> list[Run]:
    runs = [run for run in bench.checkout.runs.runs.values() if run and run.request_id == ONE]
    return sorted(runs, key=lambda run: run.run_id)


def _goes_on(bench: Bench) -> None:
    """The old work is in the new branch, which is in line with the base, and each run names the other."""
    old, new = _runs(bench)[0], _runs(bench)[-1]
    repository = bench.checkout.repository
    assert new.state is RunState.DONE, (new.state, new.error)
    assert new.continues is not None
    assert (new.continues.run_id, old.continued_by) == (old.run_id, new.run_id)
    assert all(repository.leads_to(tip, new.tip) for tip in (old.tip, bench.checkout.base))
    assert {f"{old.run_id}.txt", f"{new.run_id}.txt"} <= set(repository.files_of(new.tip))
    assert bench.checkout.status(ONE) == "blocked"


def _goes_on_or_is_ready(bench: Bench) -> None:
    """Killed so early that nobody knows of a new run, the request is as it was."""
    if len(_runs(bench)) == 1:
        assert (states_of(bench), bench.checkout.status(ONE)) == ([RunState.FAILED], "ready")
    else:
        _goes_on(bench)
    assert len(_runs(bench)) <= 2


def _goes_on_once(bench: Bench) -> None:
    assert len(_runs(bench)) == 2
    _goes_on(bench)


def _is_afresh(bench: Bench) -> None:
    """Nothing of the work that was dropped is in the new branch, and its own branch still has it."""
    old, new = _runs(bench)
    assert (new.state, new.continues, old.continued_by) == (RunState.DONE, None, None)
    assert f"{old.run_id}.txt" not in bench.checkout.repository.files_of(new.tip)
    assert f"{old.run_id}.txt" in bench.checkout.repository.files_of(f"refs/heads/{old.place.branch}")
    assert any(told.summary == WORDS for told in new.feedback)


def _is_afresh_or_ready(bench: Bench) -> None:
    if len(_runs(bench)) == 1:
        assert (states_of(bench), bench.checkout.status(ONE)) == ([RunState.FAILED], "ready")
    else:
        _is_afresh(bench)


def _replanned_or_waits(bench: Bench) -> None:
    """Killed before there is a third run, the second still waits; else the third goes on from where it began."""
    if len(_runs(bench)) == 2:
        assert (states_of(bench)[-1], bench.checkout.status(ONE)) == (RunState.NEEDS_INPUT, "blocked")
        return
    _replanned(bench)


def _replanned(bench: Bench) -> None:
    """Whatever was replanned on the way names the run in its place; typed twice it may be replanned twice."""
    _, *replanned = _runs(bench)
    assert len(replanned) in (2, 3)
    for old, new in pairwise(replanned):
        assert (old.replaced_by, new.replaces) == (new.run_id, old.run_id)
    _goes_on(bench)


def _is_sent_back_at_most_once(bench: Bench) -> None:
    assert bench.checkout.requests.texts[ONE].count(WORDS) <= 1


def _is_out_and_ready(bench: Bench) -> None:
    """The run is closed, its request ready, its work in its branch and not in the base."""
    [run] = _runs(bench)
    repository = bench.checkout.repository
    assert (run.state, run.accepted_as, bench.checkout.status(ONE)) == (RunState.FAILED, None, "ready")
    assert bench.checkout.requests.texts[ONE].count(WORDS) == 1
    assert f"{run.run_id}.txt" in repository.files_of(f"refs/heads/{run.place.branch}")
    assert f"{run.run_id}.txt" not in repository.files_of(bench.checkout.base)


def _is_dropped(bench: Bench) -> None:
    _is_out_and_ready(bench)
    assert newest_of(bench).is_dropped


_back = on_newest(lambda engine, run: send_back(engine, run, WORDS))
_drop = on_newest(lambda engine, run: send_back(engine, run, WORDS, is_dropped=True))

CASES = {
    "run (sent back, in conflict)": Case(_sent_back(SHARED), start_one, _goes_on_or_is_ready, _goes_on_once),
    "run (sent back, moved base)": Case(_sent_back("other.txt"), start_one, _goes_on_or_is_ready, _goes_on_once),
    "run (sent back, same base)": Case(_sent_back(), start_one, _goes_on_or_is_ready, _goes_on_once),
    "run (sent back afresh)": Case(_sent_back(is_dropped=True), start_one, _is_afresh_or_ready, _is_afresh),
    "run (undone and sent back)": Case(_undone_and_sent_back, start_one, _goes_on_or_is_ready, _goes_on_once),
    "replan (continued)": Case(_continued_and_asked, resuming(ResumeMode.REPLAN), _replanned_or_waits, _replanned),
    "send-back --fresh": Case(_done, _drop, _is_sent_back_at_most_once, _is_dropped),
    "send-back (undone)": Case(_undone, _back, _is_sent_back_at_most_once, _is_out_and_ready),
}


@pytest.mark.longer
@pytest.mark.spec("REQ-6a", "RUN-11", "RUN-14", "LCK-5")
@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command, case in CASES.items() for name in case.recoveries]
)
def test_killed_at_any_call_of_a_port_what_follows_a_send_back_is_set_right(command: str, name: str) -> None:
    assert enumerate_kills(CASES[command], name, rounds(3, 1)) > 0
