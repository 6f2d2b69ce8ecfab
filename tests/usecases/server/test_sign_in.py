"""Signing in (SEC): a code is good once and for a minute, whatever somebody does to the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.server.sessions import CODE_SECONDS, Session
from aiflow.errors import AiflowError
from aiflow.usecases.server.sign_in import SignIn

pytestmark = pytest.mark.spec("SEC")
Rule = Callable[[tuple[Session, ...]], tuple[Session, ...]]


@dataclass
class MemoryAccess:
    """A token and sessions in memory."""

    token_file: str = "api-token"
    kept: tuple[Session, ...] = ()

    def token(self) -> str:
        return "the token"

    def sessions(self) -> tuple[Session, ...]:
        return self.kept

    def change(self, rule: Rule) -> tuple[Session, ...]:
        self.kept = rule(self.kept)
        return self.kept


@dataclass
class House:
    """A door, and the clock beside it."""

    time: PlayedTime = field(default_factory=PlayedTime)
    made: int = 0

    def __post_init__(self) -> None:
        self.door = SignIn(MemoryAccess(), self.time, self.new, lambda: f"CODE-{self.new()}", "ann", 30)

    def new(self) -> str:
        self.made += 1
        return str(self.made)

    def is_let_in(self, code: str) -> bool:
        try:
            return bool(self.door.sign_in(code, ""))
        except AiflowError as error:
            assert error.reason_code == "CODE_REFUSED"
            return False


def test_a_code_is_good_once_and_for_a_minute() -> None:
    house = House()
    first, second = house.door.make_code()[0], house.door.make_code()[0]
    house.time.sleep(CODE_SECONDS - 1)
    assert [house.is_let_in(first), house.is_let_in(first)] == [True, False]
    house.time.sleep(1)
    assert not house.is_let_in(second)


@pytest.mark.parametrize("hours", [-24, 24])
def test_a_clock_that_is_set_makes_no_code_last_longer(hours: int) -> None:
    house = House()
    code = house.door.make_code()[0]
    house.time.set_by = timedelta(hours=hours)
    house.time.sleep(CODE_SECONDS)
    assert not house.is_let_in(code)


def test_a_session_survives_a_clock_that_is_set_back() -> None:
    house = House()
    secret, _ = house.door.sign_in(house.door.make_code()[0], "Ann")
    house.time.set_by = timedelta(days=-2)
    caller = house.door.who(None, secret)
    assert caller is not None
    assert caller.name == "Ann"
