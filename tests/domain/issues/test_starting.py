"""Which ready issue starts next (ISS-12): in order; one that cannot start keeps no other back, and is not hammered."""

from __future__ import annotations

import pytest

from aiflow.domain.issues.starting import LONGEST_PAUSE_SECONDS, StartMemory, after_refusal, after_run, choose
from aiflow.domain.request import RequestId

A, B, C = RequestId("GH-1"), RequestId("GH-2"), RequestId("GH-3")


@pytest.mark.spec("ISS-12")
def test_it_is_the_first_in_order() -> None:
    assert choose((A, B), StartMemory(), 0.0) == A
    assert choose((), StartMemory(), 0.0) is None


@pytest.mark.spec("ISS-12")
def test_one_that_is_refused_lets_the_others_go_first_behind_a_pause() -> None:
    memory = after_refusal(StartMemory(), A, 10.0)
    assert choose((A, B), memory, 10.0) is None
    assert choose((A, B), memory, memory.due_at) == B
    memory = after_run(memory, B)
    assert choose((A, C), memory, 20.0) == C
    assert choose((A,), memory, 20.0) == A


@pytest.mark.spec("ISS-12")
def test_the_pauses_grow_to_a_minute_and_a_run_ends_them() -> None:
    memory, at, starts = StartMemory(), 0.0, 0
    while at < 3600:
        if choose((A, B, C), memory, at) is not None:
            memory, starts = after_refusal(memory, A, at), starts + 1
        at += 1
    assert starts < 3600 / LONGEST_PAUSE_SECONDS + 10
    assert choose((A,), after_run(memory, B), at) == A
