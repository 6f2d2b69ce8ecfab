"""Let people in (SEC): a one-time code becomes a session with a name; the user's token is for programs."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.server.sessions import CODE_SECONDS, MOST_TRIES, Code, Session, clean_name, remaining
from aiflow.errors import AiflowError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import datetime

    from aiflow.ports import Time
    from aiflow.ports.server import Access


class Caller(NamedTuple):
    """Who calls: the name that the journal records, and their session if they have one."""

    name: str
    session_id: str | None = None


@dataclass(slots=True)
class SignIn:
    """The door of one server.

    `user` is the name of the operating system's user. Codes are known to this process alone: they are over in a minute.
    """

    access: Access
    time: Time
    new_secret: Callable[[], str]
    new_code: Callable[[], str]
    user: str
    days: float
    _codes: list[Code] = field(default_factory=list)
    _tries: int = 0
    _guard: AbstractContextManager[object] = field(init=False)

    def __post_init__(self) -> None:
        self._guard = self.time.mutex()

    def make_code(self) -> tuple[str, datetime]:
        """Make a code with which one browser can sign in, once and soon; return it and when it is over."""
        code, expires = self.new_code(), self.time.now() + timedelta(seconds=CODE_SECONDS)
        with self._guard:
            until = self.time.monotonic() + CODE_SECONDS
            self._codes = [*self._open_codes(), Code(hashed(typed_code(code)), expires, until)]
        return code, expires

    def sign_in(self, code: str, name: str, agent: str = "") -> tuple[str, Session]:
        """Make a session of a code, or refuse; return its secret, which is given out only once."""
        key = hashed(typed_code(code))
        with self._guard:
            used = [each for each in self._open_codes() if hmac.compare_digest(each.key, key)]
            self._codes = [each for each in self._codes if each not in used]
            self._tries = 0 if used else self._tries + 1
            if self._tries >= MOST_TRIES:
                self._codes, self._tries = [], 0
        if not used:
            raise AiflowError(reason_code="CODE_REFUSED")
        secret, now = self.new_secret(), self.time.now()
        session = Session(
            session_id=hashed(f"id:{secret}")[:12],
            key=hashed(secret),
            name=clean_name(name, self.user),
            created_at=now,
            expires_at=now + timedelta(days=self.days),
            seen_at=now,
            agent=clean_name(agent, ""),
        )
        self.access.change(lambda before: remaining((*before, session), now))
        return secret, session

    def who(self, bearer: str | None, cookie: str | None) -> Caller | None:
        """Return who brought a token or a session's secret; where both are brought, the token alone counts."""
        if bearer is not None:
            is_right = hmac.compare_digest(bearer.encode(), self.access.token().encode())
            return Caller(self.user) if is_right else None
        if cookie is None:
            return None
        key, now = hashed(cookie), self.time.now()
        found = next((each for each in self.access.sessions() if hmac.compare_digest(each.key, key)), None)
        if found is None or not found.is_valid(now):
            return None
        if found.is_to_note(now):
            self.access.change(lambda all_: tuple(each.seen(now) if each.key == key else each for each in all_))
        return Caller(found.name, found.session_id)

    def sessions(self) -> tuple[Session, ...]:
        """Return who is signed in, the one that was used last first."""
        return remaining(self.access.sessions(), self.time.now())[::-1]

    def revoke(self, session_id: str | None) -> int:
        """End a session, or all of them; return how many."""
        ended = [each for each in self.access.sessions() if session_id in (None, each.session_id)]
        if session_id is not None and not ended:
            raise NotFoundError(reason_code="SESSION_NOT_FOUND", session_id=session_id)
        self.access.change(lambda before: tuple(each for each in before if each not in ended))
        return len(ended)

    def _open_codes(self) -> list[Code]:
        now, passed = self.time.now(), self.time.monotonic()  # the first for a machine that slept, the second for one
        return [each for each in self._codes if now < each.expires_at and passed < each.until]  # whose clock was set


def typed_code(code: str) -> str:
    """Return a code as it counts, however it was typed."""
    return "".join(each for each in code.upper() if each.isalnum())


def hashed(secret: str) -> str:
    """Return what is kept of a secret; it is random and long, so that a plain hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()
