"""What is advised, as a page has it (DESIGN §5): a link where a page does it, a command where only a terminal can.

One table decides which: `PLACES` has where each kind of action is done, and what is not in it is typed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.next_action import SETTING, ActionKind, NextAction
from aiflow.messages.commands import command_line, said
from aiflow.web.drawing import request_path, run_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from aiflow.messages import Texts
    from aiflow.messages.advice import Advice


class PagePlace(NamedTuple):
    """Where a page does something: the address, the name of the link, and whether a dialog asks there.

    Of what is about a run, the address is what follows that of the run; `is_of_request` of what is about a request.
    """

    path: str
    name: str
    is_dialog: bool = False
    is_of_run: bool = False
    is_of_request: bool = False


def _of_run(kind: ActionKind, path: str = "", *, is_dialog: bool = False) -> PagePlace:
    return PagePlace(path, f"web.decide.{kind}", is_dialog, is_of_run=True)


_REQUEST = PagePlace("", "web.page.request", is_of_request=True)
_BACKLOG = PagePlace("/backlog", "web.page.backlog")
_QUEUE = PagePlace("/queue", "web.page.queue")
PLACES: Mapping[ActionKind, PagePlace] = {
    **dict.fromkeys((ActionKind.RUN, ActionKind.SET, ActionKind.WHY, ActionKind.SHOW), _REQUEST),
    ActionKind.RESUME: _of_run(ActionKind.RESUME),
    ActionKind.RETRY_STEP: _of_run(ActionKind.RETRY_STEP),
    ActionKind.UPDATE: _of_run(ActionKind.UPDATE),
    ActionKind.ANSWER: _of_run(ActionKind.ANSWER),
    ActionKind.ACCEPT: _of_run(ActionKind.ACCEPT),
    ActionKind.SEND_BACK: _of_run(ActionKind.SEND_BACK),
    ActionKind.UNDO: _of_run(ActionKind.UNDO),
    ActionKind.REPLAN: _of_run(ActionKind.REPLAN, "/replan", is_dialog=True),
    ActionKind.CANCEL: _of_run(ActionKind.CANCEL, "/cancel", is_dialog=True),
    ActionKind.LOGS: PagePlace("?view=log", "web.run.view.log", is_of_run=True),
    ActionKind.REPORT: PagePlace("?view=report", "web.run.view.report", is_of_run=True),
    ActionKind.DIFF: PagePlace("?view=diff", "web.run.view.diff", is_of_run=True),
    **dict.fromkeys((ActionKind.LIST, ActionKind.NEXT, ActionKind.FORECAST, ActionKind.LOCKS), _BACKLOG),
    **dict.fromkeys((ActionKind.QUEUE_LIST, ActionKind.QUEUE_SHOW, ActionKind.QUEUE_CANCEL), _QUEUE),
    ActionKind.NEW: PagePlace("/new", "web.new_request"),
    ActionKind.RUNS: PagePlace("/activity", "web.page.activity"),
    ActionKind.STATUS: PagePlace("/", "web.page.morning"),
    ActionKind.DOCTOR: PagePlace("/doctor", "web.page.doctor"),
    ActionKind.ISSUES_DOCTOR: PagePlace("/doctor", "web.page.doctor"),
    ActionKind.ISSUES_SHOW: PagePlace("#story", "web.page.request", is_of_request=True),
    ActionKind.AGENTS: PagePlace("/agents", "web.agents"),
    ActionKind.SETTINGS: PagePlace("/settings", "web.settings"),
    ActionKind.AUTO: PagePlace("/auto/start", "web.start_auto", is_dialog=True),
    ActionKind.STOP: PagePlace("/auto/stop", "web.stop", is_dialog=True),
}
# How a run is resumed after a question of its own.
_ASKED = {"force": "/resume?force=1", "keep_changes": "/resume?keep_changes=1", "no_baseline": "/resume?no_baseline=1"}
# What no page can say: a setting for one call, a lock to be broken, an agent to be called.
_ONLY_TYPED = frozenset({SETTING, "break", "check"})
# A command of another program among the words, which is copied as it is.
_COMMAND = re.compile(r"`([a-z]+ [^`…]+)`")


class Piece(NamedTuple):
    """A piece of advice: words, a link with an address, or a command to copy."""

    words: str
    href: str = ""
    is_dialog: bool = False
    is_command: bool = False
    is_outside: bool = False


def advice_pieces(advices: Iterable[Advice], texts: Texts, runs: Mapping[str, str]) -> tuple[tuple[Piece, ...], ...]:
    """Return all that helps who is at a page; `runs` is the run that is meant of each request."""
    return tuple(tuple(_pieces(each, texts, runs)) for each in advices if not each.audience)


def piece_of(action: NextAction, texts: Texts, runs: Mapping[str, str]) -> Piece:
    """Return one action as what a page has for it."""
    if action.kind is ActionKind.AT_GITHUB:
        return _outside(action, texts)
    place = PLACES.get(action.kind)
    if place is None or any(name in _ONLY_TYPED for name, _ in action.options):
        return Piece(command_line(action), is_command=True)
    if not (place.is_of_run or place.is_of_request):
        return Piece(texts(place.name), place.path, place.is_dialog)
    known = action.request_id
    if known is None or known.startswith("<"):  # it is unknown which
        return Piece(texts(_BACKLOG.name), _BACKLOG.path)
    run_id = action.run_id or (runs.get(known) if place.is_of_run else None)
    if run_id is None:
        return Piece(texts(place.name, id=known), request_path(known))
    asked = next((path for name, path in _ASKED.items() if action.has(name)), "")
    return Piece(
        texts(place.name, id=known), run_path(known, run_id) + (asked or place.path), place.is_dialog or bool(asked)
    )


def _outside(action: NextAction, texts: Texts) -> Piece:
    """Return what is done by hand on an issue as a link to it."""
    url, words = dict(action.options)["url"], said(action, texts)
    if not url.startswith(("https://", "http://")):
        return Piece(words)
    return Piece(words.removesuffix(url).rstrip(" :"), url, is_outside=True)


def _pieces(advice: Advice, texts: Texts, runs: Mapping[str, str]) -> Iterator[Piece]:
    """Yield the pieces of one advice; words with one link after them are the link themselves."""
    match advice.pieces:
        case (str(words), NextAction() as action):
            done = piece_of(action, texts, runs)
            if not done.is_command and words.endswith(": ") and "`" not in words:
                yield done._replace(words=words.removesuffix(": "))
                return
    for each in advice.pieces:
        if isinstance(each, NextAction):
            yield piece_of(each, texts, runs)
        else:
            for index, part in enumerate(_COMMAND.split(each)):
                if part:
                    yield Piece(part, is_command=index % 2 == 1)
