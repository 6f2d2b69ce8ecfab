"""What a message advises: words, and the actions they are about (ERR-1).

In `messages.v1.<lang>.json` an action is a sentence, or `{"text": …, "do": …}`: `do` names a row of the table below, or
several, which stand where the text has `{do}`, or else behind it. Ids come from the message's facts. What helps only
who is at a terminal, or calls the API from a script, says so: `{"text": …, "for": "terminal"}`. A page leaves it out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from aiflow.domain.next_action import OPEN, ActionKind, NextAction, shell
from aiflow.messages.commands import command_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SLOT = "{do}"
_REQUEST, _TASK = "request_id", "task_id"


def _of_request(kind: ActionKind, **options: str) -> NextAction:
    return NextAction(kind, request_id=_REQUEST, options=tuple(options.items()))


def _plain(kind: ActionKind, **options: str) -> NextAction:
    return NextAction(kind, options=tuple(options.items()))


# What can be advised, by the name that a message uses; an id is here the name of the fact that it comes from.
ADVISED: Mapping[str, NextAction] = {
    "run": _of_request(ActionKind.RUN),
    "resume": _of_request(ActionKind.RESUME),
    "resume.by_demo": _of_request(ActionKind.RESUME, setting="agent.kind=demo"),
    "resume.any": _plain(ActionKind.RESUME),
    "resume.keep_changes": _of_request(ActionKind.RESUME, keep_changes=""),
    "resume.force": _of_request(ActionKind.RESUME, force=""),
    "retry_step": _of_request(ActionKind.RETRY_STEP),
    "replan": _of_request(ActionKind.REPLAN),
    "update": _of_request(ActionKind.UPDATE),
    "answer": _of_request(ActionKind.ANSWER, answer=OPEN),
    "cancel": _of_request(ActionKind.CANCEL),
    "cancel.any": _plain(ActionKind.CANCEL),
    "accept": _of_request(ActionKind.ACCEPT),
    "send_back": _of_request(ActionKind.SEND_BACK, message=OPEN),
    "why": _of_request(ActionKind.WHY),
    "show": _of_request(ActionKind.SHOW),
    "logs": _of_request(ActionKind.LOGS),
    "report": _of_request(ActionKind.REPORT),
    "set.ready": _of_request(ActionKind.SET, status="ready"),
    "set.done": _of_request(ActionKind.SET, status="done"),
    "set.any": _of_request(ActionKind.SET, KEY="VALUE"),
    "new": _plain(ActionKind.NEW),
    "list": _plain(ActionKind.LIST),
    "next": _plain(ActionKind.NEXT),
    "forecast": _plain(ActionKind.FORECAST),
    "runs": _plain(ActionKind.RUNS),
    "auto": _plain(ActionKind.AUTO),
    "stop": _plain(ActionKind.STOP),
    "locks": _plain(ActionKind.LOCKS),
    "locks.break.turn": _plain(ActionKind.LOCKS, **{"break": "turn"}),
    "doctor": _plain(ActionKind.DOCTOR),
    "doctor.full": _plain(ActionKind.DOCTOR, full=""),
    "agents": _plain(ActionKind.AGENTS),
    "agents.check": _plain(ActionKind.AGENTS, check=""),
    "settings": _plain(ActionKind.SETTINGS),
    "init": _plain(ActionKind.INIT),
    "init.requests_dir": _plain(ActionKind.INIT, requests_dir="backlog"),
    "demo": _plain(ActionKind.DEMO),
    "demo.folder": _plain(ActionKind.DEMO, folder="DIR"),
    "queue.add.any": NextAction(ActionKind.QUEUE_ADD, request_id="REQUEST"),
    "queue.add.prompt": _plain(ActionKind.QUEUE_ADD, prompt=OPEN),
    "queue.list": _plain(ActionKind.QUEUE_LIST),
    "queue.list.all": _plain(ActionKind.QUEUE_LIST, all=""),
    "queue.show": NextAction(ActionKind.QUEUE_SHOW, task_id=_TASK),
    "queue.cancel": NextAction(ActionKind.QUEUE_CANCEL, task_id=_TASK),
    "up": _plain(ActionKind.UP),
    "up.port": _plain(ActionKind.UP, port="4400"),
    "open": _plain(ActionKind.OPEN),
    "service.print": _plain(ActionKind.SERVICE_INSTALL, print=""),
    "service.status": _plain(ActionKind.SERVICE_STATUS),
    "sessions": _plain(ActionKind.SESSIONS),
    "status": _plain(ActionKind.STATUS),
    "store.start": _plain(ActionKind.STORE_START),
    "store.status": _plain(ActionKind.STORE_STATUS),
    "store.logs": _plain(ActionKind.STORE_LOGS),
}


class Advice(NamedTuple):
    """One thing that a message advises: words, with the actions in between and behind them."""

    pieces: tuple[str | NextAction, ...]
    # Whom alone it helps: at a terminal, or in a script; everybody if nothing is said.
    audience: str = ""

    @property
    def steps(self) -> tuple[NextAction, ...]:
        """The actions that it names."""
        return tuple(piece for piece in self.pieces if isinstance(piece, NextAction))

    @property
    def typed(self) -> str:
        """The advice with its actions as commands; one that is nothing but an action is its command alone."""
        if len(self.pieces) == 1 and self.steps:
            return command_line(self.steps[0])
        return "".join(each if isinstance(each, str) else f"`{command_line(each)}`" for each in self.pieces)

    def with_settings(self, settings: Sequence[str]) -> Advice:
        """Return the advice with the settings of a call in every action that they count for."""
        pieces = (each if isinstance(each, str) else each.with_settings(settings) for each in self.pieces)
        return self._replace(pieces=tuple(pieces))

    def trying(self, kind: ActionKind) -> Advice | None:
        """Return the advice for who tried something else than to resume: that is what is to be tried again.

        How a run is resumed is no advice for who has none yet.
        """
        if any(step.kind is ActionKind.RESUME and step.without_settings().options for step in self.steps):
            return None
        return self._replace(pieces=tuple(_trying(kind, piece) for piece in self.pieces))


def _trying(kind: ActionKind, piece: str | NextAction) -> str | NextAction:
    if isinstance(piece, NextAction) and piece.kind is ActionKind.RESUME:
        return replace(piece, kind=kind)
    return piece


def needed(action: str | Mapping[str, Any]) -> tuple[str, ...]:
    """Return the facts that are actions themselves and that an action of a message names."""
    return () if isinstance(action, str) else tuple(name for name in _names(action) if name not in ADVISED)


def read_advice(action: str | Mapping[str, Any], facts: Mapping[str, object], fill: Callable[[str], str]) -> Advice:
    """Make advice of what a message's file says; `fill` puts the facts into words."""
    if isinstance(action, str):
        return Advice((fill(action),))
    if "do" not in action:
        return Advice((fill(action["text"]),), action["for"])
    text, steps = action["text"], [_step(name, facts) for name in _names(action)]
    if SLOT not in text:
        return Advice((f"{fill(text)}: ", *steps))
    pieces: list[str | NextAction] = []
    for words, step in zip(text.split(SLOT), [*steps, None], strict=True):
        pieces += [fill(words)] if words else []
        pieces += [step] if step else []
    return Advice(tuple(pieces))


def _names(action: Mapping[str, Any]) -> list[str]:
    named = action.get("do", ())
    return [named] if isinstance(named, str) else list(named)


def _step(name: str, facts: Mapping[str, object]) -> NextAction:
    """Return one action: a row of the table with the ids filled in, or one that is a fact itself."""
    row = ADVISED.get(name)
    if row is None:
        known = facts.get(name, f"<{name}>")
        return known if isinstance(known, NextAction) else shell(str(known))  # a run's record has only its words
    if row.request_id == _REQUEST:
        return replace(row, request_id=str(facts.get(_REQUEST, f"<{_REQUEST}>")))
    return replace(row, task_id=str(facts.get(_TASK, f"<{_TASK}>"))) if row.task_id == _TASK else row
