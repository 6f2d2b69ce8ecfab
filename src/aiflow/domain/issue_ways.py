"""Issues by their ids, `GH-<n>`, and what can be done about one (ISS-2, ISS-6, ISS-9): of what is advised, what works.

A file is set and edited. An issue is labelled, commented and closed at GitHub, and a stopped run of it is not resumed
but tried again. One table each: for what is advised (`for_issue`), and for what keeps an issue (`mending`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import IssueLabel
from aiflow.domain.next_action import OPEN, SETTING, ActionKind, NextAction
from aiflow.domain.request import RequestId, RequestStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.domain.request import Request

_ID = re.compile(r"GH-([1-9][0-9]{0,9})")
# What is done by hand on an issue, by name; its words are `at_github.<name>`.
LABEL, RELABEL, RETRY, CLOSE, EDIT, ACCEPT = "label", "relabel", "retry", "close", "edit", "accept"
# An issue's run that has stopped is tried again with a new one: words are posted with `/retry`.
_TRIED_AGAIN = frozenset(
    {ActionKind.RESUME, ActionKind.RETRY_STEP, ActionKind.REPLAN, ActionKind.UPDATE, ActionKind.ANSWER}
)
# What a file's status is set to, and what is done on an issue instead.
_INSTEAD_OF_SET: Mapping[str, str] = {
    RequestStatus.READY.value: LABEL,
    RequestStatus.DONE.value: CLOSE,
    RequestStatus.ARCHIVED.value: CLOSE,
}
# What keeps an issue from running, and what is done on it about that; the first one that is there counts.
_MENDED_THERE: Mapping[str, str] = {
    "AWAITING_CLOSE": CLOSE,
    "AWAITING_ACCEPTANCE": ACCEPT,
    "LABEL_NOT_PERMITTED": RELABEL,
    "ISSUE_TEXT_CHANGED": RELABEL,
    "ISSUE_DECISION_MISSING": RETRY,
    "ISSUE_RETRY_ONLY": RETRY,
    "RUN_LOST": RETRY,
    "DEPENDS_NOT_FOUND": EDIT,
    "DEPENDS_CYCLE": EDIT,
}


def request_id_of(number: int) -> RequestId:
    """Return the request id of an issue."""
    return RequestId(f"GH-{number}")


def issue_number(request_id: str) -> int | None:
    """Return the number of the issue that a request id names, None if it names none."""
    match = _ID.fullmatch(request_id)
    return int(match[1]) if match else None


def is_issue(request_id: str | None) -> bool:
    """Return whether a request id is an issue's."""
    return request_id is not None and issue_number(request_id) is not None


def at_github(name: str, request_id: str, url: str = "", label: IssueLabel = IssueLabel.QUEUED) -> NextAction:
    """Return something that is done by hand on an issue."""
    options = (("do", name), ("url", url), *((("label", label.value),) if name in (LABEL, RELABEL) else ()))
    return NextAction(ActionKind.AT_GITHUB, request_id, options=options)


def answer(request_id: str) -> NextAction:
    """Return to post words on an issue and try it again."""
    return NextAction(ActionKind.ANSWER, request_id, options=(("answer", OPEN),))


def for_issue(action: NextAction, url: str = "") -> NextAction:
    """Return what works for an issue in the place of what is advised; of anything else the action itself."""
    request_id = action.request_id
    if request_id is None or not is_issue(request_id):
        return action
    if action.has("no_baseline"):  # a new run of an issue is started by its label, which has no options
        return NextAction(ActionKind.SETTINGS, options=(("key", "tests.baseline"),))
    if action.kind in _TRIED_AGAIN:
        again = answer(request_id)
        return replace(again, options=(*again.options, *(each for each in action.options if each[0] == SETTING)))
    if action.kind is not ActionKind.SET:
        return action
    return at_github(_INSTEAD_OF_SET.get(dict(action.options).get("status", ""), EDIT), request_id, url)


def mending(request: Request, codes: frozenset[str], *, has_run: bool) -> Iterator[NextAction]:
    """Yield what fixes an issue that cannot run; `has_run` if the run that it waits with is this checkout's."""
    is_stopped = request.status is RequestStatus.BLOCKED
    if "ISSUE_RETRY_LIMIT" in codes:
        yield NextAction(ActionKind.SETTINGS, options=(("key", "limits.issue_retries"),))
        return
    name = next((there for code, there in _MENDED_THERE.items() if code in codes), None)
    if has_run and is_stopped and name in (None, RETRY):
        yield answer(request.id)
    elif name is not None:
        yield at_github(name, request.id, request.where)
    elif "NOT_READY" in codes and request.status is RequestStatus.DRAFT:
        yield at_github(LABEL, request.id, request.where)
    elif is_stopped and "NOT_READY" in codes:
        yield at_github(RETRY, request.id, request.where)
