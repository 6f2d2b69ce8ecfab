"""Doors to a hub: each runner has its own, which lets calls wait, shows a past of the comments, and writes down writes."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiflow.adapters.github_issues.transport import Answer, Ask
from aiflow.domain.issues.marks import CommentMark, find_mark
from github.answering import GitHub
from github.hub import IssueRow

_COMMENTS = re.compile(r"/issues/(\d+)/comments$")
_ISSUE = re.compile(r"/issues/(\d+)$")
GATE_SECONDS = 0.4


@dataclass(frozen=True)
class Lag:
    """How a list of comments lags: for how long, whether own comments are there at once, and the issue's count too."""

    seconds: tuple[float, ...] = (0.0,)
    is_own_seen: bool = False
    is_count_late: bool = False


@dataclass
class Past:
    """What a hub's comments were at each moment, and every write with a mark, in the order in which the hub did them."""

    api: GitHub
    marks: list[tuple[str, CommentMark]] = field(default_factory=list)
    guard: threading.RLock = field(default_factory=threading.RLock)
    _was: dict[int, list[tuple[float, list[int]]]] = field(default_factory=dict)

    def note(self, row: IssueRow) -> None:
        """Remember which comments an issue has now."""
        kept = self._was.setdefault(row.number, [(0.0, [])])
        kept.append((time.monotonic(), [comment.id for comment in row.comments]))

    def ids(self, number: int, seconds_ago: float) -> list[int]:
        """Return the comments that an issue had."""
        at = time.monotonic() - seconds_ago
        was = [ids for noted_at, ids in self._was.get(number, [(0.0, [])]) if noted_at <= at]
        return was[-1] if was else []


class Gate:
    """Lets the headers of both runners through together, if both come within a moment."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[str]] = {}
        self._turn = threading.Condition()

    def wait(self, path: str, name: str) -> None:
        with self._turn:
            here = self._waiting.setdefault(path, set())
            here.add(name)
            self._turn.notify_all()
            self._turn.wait_for(lambda: len(here) > 1, GATE_SECONDS)


class Door:
    """One runner's way to the hub; a `Transport`."""

    def __init__(self, name: str, past: Past, gate: Gate, chance: random.Random) -> None:
        self.name, self.lag, self.is_gated = name, Lag(), True
        self._past, self._gate, self._chance = past, gate, chance
        self._own: set[int] = set()

    def close(self) -> None:
        """Keep nothing."""

    def send(self, ask: Ask, headers: Mapping[str, str]) -> Answer:
        with self._past.guard:
            delay, lag = self._chance.random() ** 3 * 0.12, self._chance.choice(self.lag.seconds)
        time.sleep(delay)
        mark = _mark_of(ask)
        if self.is_gated and mark is not None and ask.method == "POST" and mark.kind == "run-header":
            self._gate.wait(ask.path, self.name)
        with self._past.guard:
            answer = self._past.api.send(ask, headers)
            return self._written(ask, answer, mark) if ask.is_write else self._late(ask, answer, lag)

    def _written(self, ask: Ask, answer: Answer, mark: CommentMark | None) -> Answer:
        if mark is not None and answer.status < 300:
            self._past.marks.append((self.name, mark))
            self._own.add(json.loads(answer.body)["id"])
        for row in self._past.api.hub.rows.values():
            self._past.note(row)
        return answer

    def _late(self, ask: Ask, answer: Answer, lag: float) -> Answer:
        """Give the comments, and perhaps their count, as they were a moment ago."""
        is_list, is_issue = _COMMENTS.search(ask.path), _ISSUE.search(ask.path)
        if answer.status != 200 or not lag or not (is_list or is_issue):
            return answer
        number = int((is_list or is_issue or [0, 0])[1])
        seen = {*self._past.ids(number, lag), *(self._own if self.lag.is_own_seen else ())}
        document = json.loads(answer.body)
        if is_list:
            document = [each for each in document if each["id"] in seen]
        elif self.lag.is_count_late:
            document["comments"] = min(document["comments"], len(seen))
        return answer._replace(body=json.dumps(document).encode())


def _mark_of(ask: Ask) -> CommentMark | None:
    body = ask.body.get("body") if isinstance(ask.body, dict) else None
    return find_mark(body) if isinstance(body, str) else None
