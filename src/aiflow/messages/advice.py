"""What a message advises: words, and the actions they are about (ERR-1).

In `messages.v1.<lang>.json` an action is a sentence, or `{"text": …, "do": …}`: `do` names a row of the table below, or
several, which stand where the text has `{do}`, or else behind it. Ids come from the message's facts. What helps only
who is at a terminal, or calls the API from a script, says so: `{"text": …, "for": "terminal"}`. A page leaves it out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from aiflow.domain.issue_ways import for_issue, is_issue
from aiflow.domain.next_action import OPEN, ActionKind, NextAction, shell
from aiflow.messages.commands import command_line, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from aiflow.messages import Texts

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
    "resume.no_baseline": _of_request(ActionKind.RESUME, no_baseline=""),
    "retry_step": _of_request(ActionKind.RETRY_STEP),
    "replan": _of_request(ActionKind.REPLAN),
    "update": _of_request(ActionKind.UPDATE),
    "answer": _of_request(ActionKind.ANSWER, answer=OPEN),
    "cancel": _of_request(ActionKind.CANCEL),
    "cancel.any": _plain(ActionKind.CANCEL),
    "accept": _of_request(ActionKind.ACCEPT),
    "undo": _of_request(ActionKind.UNDO),
    "undo.any": NextAction(ActionKind.UNDO, request_id=f"<{_REQUEST}>"),
    "send_back": _of_request(ActionKind.SEND_BACK, message=OPEN),
    "why": _of_request(ActionKind.WHY),
    "show": _of_request(ActionKind.SHOW),
    "logs": _of_request(ActionKind.LOGS),
    "report": _of_request(ActionKind.REPORT),
    "set.ready": _of_request(ActionKind.SET, status="ready"),
    "set.done": _of_request(ActionKind.SET, status="done"),
    "set.archived": _of_request(ActionKind.SET, status="archived"),
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
    "issues.sync": _plain(ActionKind.ISSUES_SYNC),
    "issues.show": _of_request(ActionKind.ISSUES_SHOW),
    "issues.doctor": _plain(ActionKind.ISSUES_DOCTOR),
}


class Advice(NamedTuple):
    """One thing that a message advises: words, with the actions in between and after them."""

    pieces: tuple[str | NextAction, ...]
    # Whom alone it helps: at a terminal, or in a script; everybody if it is empty.
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

    @property
    def is_of_a_run(self) -> bool:
        """Whether it says how a run that has stopped is resumed, which is more than that it is."""
        return any(step.kind is ActionKind.RESUME and step.without_settings().options for step in self.steps)

    def with_settings(self, settings: Sequence[str]) -> Advice:
        """Return the advice with the settings of a call in every action that they count for."""
        pieces = (each if isinstance(each, str) else each.with_settings(settings) for each in self.pieces)
        return self._replace(pieces=tuple(pieces))

    def trying(self, kind: ActionKind) -> Advice | None:
        """Return the advice for who tried something else than to resume: that is what is to be tried again.

        How a run is resumed is no advice for who has none yet.
        """
        if self.is_of_a_run:
            return None
        return self._replace(pieces=tuple(_trying(kind, piece) for piece in self.pieces))


def _trying(kind: ActionKind, piece: str | NextAction) -> str | NextAction:
    if isinstance(piece, NextAction) and piece.kind in (ActionKind.RESUME, ActionKind.ANSWER):
        return replace(piece, kind=kind, options=tuple(each for each in piece.options if each[0] != "answer"))
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


def issue_of(facts: Mapping[str, object]) -> str:
    """Return the issue that a message is about, by its address where that is known; empty if it is about none."""
    request_id, path = str(facts.get(_REQUEST, "")), str(facts.get("path", ""))
    if not is_issue(request_id):
        return ""
    return path if path.startswith(("https://", "http://")) else request_id


def taken_for_issue(advices: Iterable[Advice], issue: str, texts: Texts) -> Iterator[Advice]:
    """Yield what of some advice works for an issue: what cannot be typed for one is worded as what is done on it.

    However a run of a file may continue, that of an issue is tried again, so that is said once. An issue is not undone.
    """
    url, is_retried = issue if ":" in issue else "", False
    for advice in advices:
        if any(step.kind is ActionKind.UNDO for step in advice.steps):
            continue
        steps = [for_issue(step, url) for step in advice.steps]
        by_hand = [step for step in steps if step.kind is ActionKind.AT_GITHUB]
        is_retry = any(step.kind is ActionKind.ANSWER for step in steps)
        if by_hand and len(advice.pieces) <= len(advice.steps) + 1 and str(advice.pieces[0]).endswith(": "):
            yield Advice((by_hand[0].having(words=said(by_hand[0], texts)),))
        elif by_hand:
            yield advice._replace(pieces=tuple(_by_hand(each, url, texts) for each in advice.pieces))
        elif not is_retry or not (is_retried or advice.is_of_a_run):
            is_retried = is_retried or is_retry
            pieces = (for_issue(each, url) if isinstance(each, NextAction) else each for each in advice.pieces)
            yield advice._replace(pieces=tuple(pieces))


def _by_hand(piece: str | NextAction, url: str, texts: Texts) -> str | NextAction:
    """Return a piece of advice with what cannot be typed as words."""
    action = for_issue(piece, url) if isinstance(piece, NextAction) else piece
    is_by_hand = isinstance(action, NextAction) and action.kind is ActionKind.AT_GITHUB
    return said(action, texts) if isinstance(action, NextAction) and is_by_hand else action


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
