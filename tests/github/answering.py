"""The hub's API: a call in, an answer out, with everything that goes wrong on the way. A client's `Transport`.

In a test of one process the client calls it directly, on played time; `server.py` puts it behind HTTP.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import unquote

from aiflow.adapters.github_issues.transport import Answer, Ask, LostError, NotSentError
from github import shapes
from github.call import AppRow, Call, Found, RefusedError
from github.hub import Hub, User
from github.routes import ROUTES

HOUR = 5000


@dataclass
class Fault:
    """Something that goes wrong at calls whose `METHOD /path` a pattern finds, so many times."""

    where: str
    kind: str  # "answer" in place of the deed, "lost" behind the deed, "unsent" before it
    times: int = 1
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "Server Error"


@dataclass
class GitHub:
    """The API in front of a hub; `before` is called ahead of each call, to let time pass or others act."""

    hub: Hub
    link_url: str = shapes.API
    before: Callable[[Ask], None] = lambda _ask: None
    app: AppRow | None = None
    remaining: int = HOUR
    resets_at: datetime | None = None
    calls: list[Ask] = field(default_factory=list)
    writes: list[datetime] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    _guard: threading.RLock = field(default_factory=threading.RLock)

    # -- knobs

    def answers(self, where: str, status: int, times: int = 1, message: str = "No", **headers: str) -> None:
        """Answer so in place of the deed; a header's name has `_` for `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.faults.append(Fault(where, "answer", times, status, named, message))

    def loses(self, where: str, times: int = 1) -> None:
        """Do the deed and lose the answer."""
        self.faults.append(Fault(where, "lost", times))

    def unsent(self, where: str, times: int = 1) -> None:
        """Let no connection come about (only in one process)."""
        self.faults.append(Fault(where, "unsent", times))

    def down(self, *, is_down: bool = True) -> None:
        """Be away altogether, or be back."""
        self.faults = [fault for fault in self.faults if fault.where != ""]
        if is_down:
            self.faults.append(Fault("", "unsent", 1_000_000))

    def close(self) -> None:
        """Keep no connection."""

    # -- one call

    def send(self, ask: Ask, headers: Mapping[str, str]) -> Answer:
        """Answer a call; the hub changes one call at a time."""
        self.before(ask)
        with self._guard:
            self.calls.append(ask)
            fault = self._fault(ask)
            if fault is not None and fault.kind == "unsent":
                raise NotSentError("nobody listens")
            if fault is not None and fault.kind == "answer":
                return self._answer(fault.status, {"message": fault.message}, fault.headers)
            answer = self._do(ask, {name.lower(): value for name, value in headers.items()})
            if fault is not None:
                raise LostError("the connection broke")
            return answer

    def _fault(self, ask: Ask) -> Fault | None:
        fault = next((each for each in self.faults if each.times > 0 and re.search(each.where, str(ask))), None)
        if fault is not None:
            fault.times -= 1
        return fault

    def _do(self, ask: Ask, headers: Mapping[str, str]) -> Answer:
        if ask.is_write:
            self.writes.append(self.hub.clock())
        try:
            by = self._who(headers)
            self._count(ask)
            found = self._route(self._call(ask, by))
        except RefusedError as error:
            more = {"location": str(error.more.pop("url"))} if error.status in (301, 307) else {}
            return self._answer(error.status, error.more, more)
        status, document, more = found
        body = json.dumps(document).encode()
        tag = f'W/"{hashlib.sha256(body).hexdigest()}"'
        if ask.method == "GET" and headers.get("if-none-match") == tag:
            self.remaining += ask.path != "/rate_limit"  # what has not changed does not count
            return self._answer(304, None, {"etag": tag})
        return self._answer(status, document, {**more, **({"etag": tag} if ask.method == "GET" else {})})

    def _answer(self, status: int, document: object, more: Mapping[str, str]) -> Answer:
        headers = {
            "content-type": "application/json; charset=utf-8",
            "date": format_datetime(self.hub.clock().astimezone(UTC), usegmt=True),
            "x-ratelimit-limit": str(HOUR),
            "x-ratelimit-remaining": str(max(self.remaining, 0)),
            "x-ratelimit-reset": str(int(self._reset().timestamp())),
            "x-ratelimit-used": str(HOUR - self.remaining),
            **{name.lower(): value for name, value in more.items()},
        }
        if status in (204, 304):
            del headers["content-type"]
        return Answer(status, headers, b"" if status in (204, 304) else json.dumps(document).encode())

    def _reset(self) -> datetime:
        now = self.hub.clock().astimezone(UTC)
        if self.resets_at is None or self.resets_at <= now:
            self.remaining = HOUR if self.resets_at is not None else self.remaining
            self.resets_at = now + timedelta(hours=1)
        return self.resets_at

    def _count(self, ask: Ask) -> None:
        self._reset()
        if ask.path == "/rate_limit":
            return
        if self.remaining <= 0:
            raise RefusedError(403, "API rate limit exceeded for user ID 1.")
        self.remaining -= 1

    def _who(self, headers: Mapping[str, str]) -> User | AppRow:
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if self.app is not None and token.count(".") == 2:
            said = self.app.check(token)
            if said is not None and str(said["iss"]) == str(self.app.id):
                return self.app
        if self.app is not None and self.app.tokens.get(token, self.hub.now()) > self.hub.now():
            return self.hub.user(f"{self.app.slug}[bot]")
        if token not in self.hub.tokens:
            raise RefusedError(401, "Bad credentials")
        return self.hub.user(self.hub.tokens[token])

    def _call(self, ask: Ask, by: User | AppRow) -> Call:
        rate = (HOUR, max(self.remaining, 0), int(self._reset().timestamp()))
        return Call(self.hub, ask, by, self.link_url, rate)

    def _route(self, call: Call) -> Found:
        for (method, pattern), answer in ROUTES.items():
            if method == call.ask.method and (found := re.fullmatch(pattern, call.ask.path)):
                return answer(call, *(unquote(part) for part in found.groups()))
        raise RefusedError(404, "Not Found")
