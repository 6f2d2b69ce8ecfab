"""Accepting several requests (REQ-6, WEB-1): one by one after the answer is sent, and the result of each so far.

A merge is tested, and that may take minutes: the list is there at once, and each line says how far it is. Its address
names the requests: a restarted server finds the result of each in the runs, and which were not accepted.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.request import normalize_id
from aiflow.errors import AiflowError
from aiflow.usecases.runs.find import find_newest_run
from aiflow.usecases.server.accept import accept, is_accepting, refusal_since
from aiflow.usecases.shapes.errors import error_facts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from aiflow.api.context import CallContext
    from aiflow.messages import Texts

# So many lists can still be looked at.
KEPT = 20
# However long the tests of a merge may take.
PATIENCE_SECONDS = 24 * 3600.0


class Turn(StrEnum):
    """How far one of several is; the values are the shapes that draw it."""

    WAITS = "pause"
    GOES = "run"
    ACCEPTED = "done"
    REFUSED = "stopped"


class Outcome(NamedTuple):
    """What came of one request: its run where there is one, and why it was refused; without a reason it had no turn."""

    request_id: str
    turn: Turn = Turn.WAITS
    run_id: str | None = None
    error: AiflowError | None = None

    def words(self, texts: Texts) -> str:
        """Say it in a language."""
        if self.error is not None:
            told = texts.message(self.error.reason_code, error_facts(self.error, texts))
            return texts("web.way.and", first=texts("web.sentence", text=told.title), second=told.summary)
        keys = {
            Turn.WAITS: "web.several.waits",
            Turn.GOES: "web.receipt.accepting",
            Turn.REFUSED: "web.several.left",
        }
        return texts(keys.get(self.turn, "web.receipt.accepted"), id=self.request_id)


@dataclass(slots=True)
class Acceptance:
    """Several requests that are accepted in the order in which they were given."""

    key: str
    begun_at: datetime
    outcomes: list[Outcome]

    @property
    def decided(self) -> int:
        """Of how many it is known what came of them."""
        return sum(each.turn in (Turn.ACCEPTED, Turn.REFUSED) for each in self.outcomes)

    @property
    def is_over(self) -> bool:
        """Whether that is all of them."""
        return self.decided == len(self.outcomes)

    def go_through(self, call: CallContext) -> None:
        """Accept one after the other; a refusal of one keeps no other from its turn."""
        for at, each in enumerate(self.outcomes):
            try:
                run_id = find_newest_run(call.engine, normalize_id(each.request_id)).run_id
                self.outcomes[at] = each._replace(turn=Turn.GOES, run_id=run_id)
                accept(call.engine, call.server.work, normalize_id(each.request_id), call.person, PATIENCE_SECONDS)
                self.outcomes[at] = self.outcomes[at]._replace(turn=Turn.ACCEPTED)
            except AiflowError as error:
                self._refuse(at, error)
            except Exception as error:  # noqa: BLE001  the list must not wait for ever, whatever it was
                self._refuse(at, AiflowError(detail=type(error).__name__))

    def _refuse(self, at: int, error: AiflowError) -> None:
        self.outcomes[at] = self.outcomes[at]._replace(turn=Turn.REFUSED, error=error)


@dataclass(slots=True)
class Acceptances:
    """The lists of a server: each has an address of its own until newer ones take its place."""

    _kept: OrderedDict[str, Acceptance] = field(default_factory=OrderedDict)

    def begin(self, call: CallContext, ids: Sequence[str]) -> Acceptance:
        """Begin to accept several, and return their list."""
        made = Acceptance(secrets.token_hex(8), call.server.now(), [Outcome(each) for each in ids])
        self._kept[made.key] = made
        over = [key for key, each in self._kept.items() if each.is_over]
        for key in over[: max(0, len(self._kept) - KEPT)]:
            del self._kept[key]
        threading.Thread(target=made.go_through, args=(call,), name="accepting", daemon=True).start()
        return made

    def find(self, call: CallContext, named: Acceptance) -> Acceptance:
        """Return the list that an address names; of one that another server began, what came of its requests."""
        known = self._kept.get(named.key)
        return known or replace(named, outcomes=[_found(call, each, named.begun_at) for each in named.outcomes])


def _found(call: CallContext, outcome: Outcome, since: datetime) -> Outcome:
    """Return, by its last run, the result for a request whose turn is no longer remembered."""
    engine, named = call.engine, normalize_id(outcome.request_id)
    try:
        goes_on = is_accepting(engine, call.server.work, named)  # asked first: what ends in between is in the record
        run = find_newest_run(engine, named)
    except AiflowError as error:
        return outcome._replace(turn=Turn.REFUSED, error=error)
    outcome = outcome._replace(run_id=run.run_id)
    if run.accepted_as:
        return outcome._replace(turn=Turn.ACCEPTED)
    if goes_on:
        return outcome._replace(turn=Turn.GOES)
    return outcome._replace(turn=Turn.REFUSED, error=refusal_since(engine, run, since))
