"""What goes on beside a runner's work (QUE-7): turn after turn, whatever becomes of one of them."""

from __future__ import annotations

import threading

import pytest

from aiflow.usecases.beside import AFTER_ERROR_SECONDS, Beside


@pytest.mark.spec("QUE-7")
def test_a_turn_that_raises_is_not_the_last() -> None:
    turns = 0
    is_again = threading.Event()

    def act() -> float:
        nonlocal turns
        turns += 1
        if turns == 1:
            raise BrokenPipeError
        is_again.set()
        return 60.0

    beside = Beside("test", act)
    beside.start()
    try:
        assert is_again.wait(10 * AFTER_ERROR_SECONDS)
    finally:
        beside.close()
    assert turns == 2, "it neither ends nor spins"
