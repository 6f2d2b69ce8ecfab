"""The line to GitHub (ISS-11): every call in its turn, reads tried again a little, writes never blindly.

What could not be sent is tried again, too. A write whose answer was lost is GITHUB_UNKNOWN: its caller looks first.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING

from aiflow import __version__
from aiflow.adapters.github_issues.limits import CallPace
from aiflow.adapters.github_issues.transport import Ask, LostError, NotSentError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.adapters.github_issues.shared_pace import SharedPace
    from aiflow.adapters.github_issues.transport import Answer, Transport
    from aiflow.adapters.github_issues.troubles import RepoAddress
    from aiflow.errors import AiflowError
    from aiflow.ports.time import Time

HEADERS = {
    "Accept": "application/vnd.github+json, application/json;q=0.9",
    "X-GitHub-Api-Version": "2022-11-28",
    "User-Agent": f"aiflow/{__version__}",
}
# The pauses before a call is tried again; who needs more patience has it outside.
PAUSES_SECONDS = (1.0, 3.0)
# GitHub does not count this one, and answers it also where a limit is reached.
RATE = Ask("GET", "/rate_limit")


class CallLine:
    """Exchanges calls for answers, at the pace that GitHub sets."""

    def __init__(self, transport: Transport, time: Time, place: RepoAddress) -> None:
        self.place = place
        self.time = time
        self._transport = transport
        self._pace = CallPace(time)

    def share(self, pace: SharedPace) -> None:
        """Keep one pace with the other processes that use the same account; before the first call."""
        self._pace = CallPace(self.time, pace)

    def exchange(self, ask: Ask, headers: Mapping[str, str], takes: tuple[int, ...] = ()) -> Answer:
        """Return GitHub's answer if it did what was asked, or answered with a status that the caller takes."""
        for pause in (*PAUSES_SECONDS, None):
            answer, problem = self._try(ask, headers)
            if answer is not None and (answer.status < 300 or answer.status in takes):
                return answer
            if problem is None:
                assert answer is not None
                problem = self.place.refused(ask, answer)
            if pause is None or problem.reason_code != "GITHUB_UNREACHABLE":
                raise problem
            self.time.sleep(pause)
        raise AssertionError  # the last pause is none

    def _try(self, ask: Ask, headers: Mapping[str, str]) -> tuple[Answer | None, AiflowError | None]:
        """Make one call, and note what its answer says about limits."""
        until = self._pace.closed_until()
        if until is not None and ask != RATE:
            return None, self.place.limited(ask, until)
        try:
            with self._pace.write_turn() if ask.is_write else nullcontext():
                answer = self._transport.send(ask, {**HEADERS, **headers})
        except NotSentError as error:
            return None, self.place.failed(ask, error.args[0], may_have_happened=False)
        except LostError as error:
            return None, self.place.failed(ask, error.args[0], may_have_happened=True)
        if self._pace.heed(answer):
            return None, self.place.limited(ask, self._pace.closed_until() or self.time.now())
        return answer, None

    def close(self) -> None:
        """Close the connections that are kept: this was the last call."""
        self._transport.close()

    def document(self, ask: Ask, answer: Answer) -> object:
        """Read an answer as JSON; what is none comes from something between GitHub and us."""
        try:
            read = json.loads(answer.body)
            # JSON can hold half a character, our files cannot: one such issue must keep no other from being read.
            return _made_whole(read) if _may_halve(answer.body) else read
        except (ValueError, RecursionError) as error:
            raise self.place.failed(ask, words("github_problem.not_json"), may_have_happened=True) from error


def _may_halve(body: bytes) -> bool:
    """Tell whether a document may have half a character: only what is written like this can be one."""
    return b"\xed" in body or b"\\ud" in body or b"\\uD" in body


def _made_whole(read: object) -> object:
    """Put a question mark in the place of each half of a character."""
    return json.loads(json.dumps(read, ensure_ascii=False).encode("utf-8", "replace"))
