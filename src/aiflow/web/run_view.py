"""A run in the words of its page (DESIGN §4): its state, the panel that says why, and the buttons of the ways on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import RunState
from aiflow.domain.next_action import ActionKind
from aiflow.domain.run_summary import CUT_OFF
from aiflow.domain.runs.events import crashed
from aiflow.domain.runs.stopped import outcome_code
from aiflow.domain.runs.undoing import KEPT
from aiflow.usecases.runs.report import message_facts, message_of, words_of
from aiflow.web.advice import advice_pieces
from aiflow.web.ways import ICONS, Offer, advised, meaning, offer_of

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.ways import Way
    from aiflow.messages import Message, Texts
    from aiflow.usecases.runs.look import RunLook
    from aiflow.web.advice import Piece

# What the page itself has: its buttons, and the tabs below.
_HERE = frozenset(ICONS) | {ActionKind.LOGS, ActionKind.REPORT, ActionKind.DIFF, ActionKind.LIST, ActionKind.RUNS}
# Reasons whose summary says all, or whose particulars stand beside it.
_TOLD = frozenset({"PROCESS_CRASHED", "REPLANNED"})
# Reasons that are themselves what happened, whatever came before.
_OWN_TITLE = frozenset({"REPLANNED", "SENT_BACK"})


class RunRules(NamedTuple):
    """What the settings say that the panel repeats: how often a step may be retried, and whether there are tests."""

    step_retries: int
    has_tests: bool


class StateWord(NamedTuple):
    """A run's state: the shape that marks it, and its word."""

    mark: str
    word: str


class Panel(NamedTuple):
    """Why a run stands where it stands: the catalogue's words, and what was seen."""

    tone: str
    mark: str
    title: str
    codes: tuple[str, ...]
    text: str
    seen: str
    offers: tuple[Offer, ...]
    # Further advice, besides the buttons.
    advice: tuple[tuple[Piece, ...], ...] = ()

    @property
    def recommended(self) -> Offer | None:
        """The one way that is recommended."""
        return next((offer for offer in self.offers if offer.is_recommended), None)


def standing(look: RunLook, texts: Texts) -> StateWord:
    """Say a run's state with a shape and a word."""
    run = look.run
    name, mark = _state(look)
    return StateWord(mark, texts(f"web.run.state.{name}", state=run.state))


def panel(look: RunLook, texts: Texts, rules: RunRules) -> Panel:
    """Say why a run stands where it stands, and how it goes on."""
    run = crashed(look.run, look.run.changed_at) if look.is_cut_off else look.run
    name, mark = _state(look)
    tone = {"question": "wait", "stopped": "wait", "accept": "wait", "run": "run", "pause": "run"}.get(mark, "")
    if look.run.is_active and not look.is_cut_off:
        title, text = _at_work(run, texts)
        return Panel(tone, mark, title, (), text, "", _offers(look, run, None, texts, rules))
    if name == "accepting":
        words = texts("auto.doing.accepting")
        return Panel(tone, mark, texts("web.run.state.accepting"), (), words, "", ())
    code = outcome_code(run)
    if code is None:  # accepted
        return Panel(tone, mark, texts("web.run.accepted"), (), _merged(run, texts), "", ())
    message = message_of(run, run.error, texts) if run.error else _waiting(run, texts)
    title, codes = _title(run, message, code, texts)
    words = words_of(run.error, texts) if run.error else ""
    text = message.summary
    if name == "continues" and code != CUT_OFF:  # whose own words say so
        text = texts("web.way.and", first=text, second=texts("web.continues"))
    is_told = not words or words in message.summary or words == _asked(run) or code in _TOLD
    offers = _offers(look, run, message, texts, rules)
    return Panel(tone, mark, title, codes, text, "" if is_told else words, offers, _advice(run, message, texts))


def _state(look: RunLook) -> tuple[str, str]:
    """Name a run's state, with its shape."""
    run = look.run
    if look.around.is_continued:
        return "continues", "pause"
    if run.is_active:
        return (
            ("cut_off", "stopped") if look.is_cut_off else ("quota", "pause") if run.waits_until else ("running", "run")
        )
    return _at_rest(look)


def _at_rest(look: RunLook) -> tuple[str, str]:
    run = look.run
    if run.replaced_by:
        return "replaced", "fail"
    if run.accepted_as:
        return "accepted", "done"
    if run.state is RunState.DONE:
        return ("accepting", "run") if look.around.is_worked_on else ("done", "accept")
    if run.state is RunState.NEEDS_INPUT:
        return "waits", "question" if run.error and run.error.question else "stopped"
    is_sent_back = run.error is not None and run.error.reason_code == "SENT_BACK"
    return ("sent_back" if is_sent_back else "failed"), "fail"


def _at_work(run: Run, texts: Texts) -> tuple[str, str]:
    """Say what a run does now."""
    if run.waits_until is not None:
        return texts("web.run.quota"), texts("web.run.quota.means")
    step, index = run.current_step, run.current_index
    title = texts(f"web.run.doing.{run.state}")
    if step is not None and index is not None and run.state in (RunState.IMPLEMENTING, RunState.TESTING):
        title = texts("web.run.at", step_id=step.id, total=len(run.plan), title=step.title)
    role = run.visit.calling
    if run.state is RunState.TESTING and role is None:
        return title, texts("web.run.tests")
    if role is None:
        return title, ""
    return title, texts(f"web.run.role.{role}", n=run.calls_of(role))


def _merged(run: Run, texts: Texts) -> str:
    if run.was_empty:
        return texts("web.run.accepted.empty")
    told = texts("web.run.accepted.as", branch=run.place.base_branch, commit=(run.accepted_as or "")[:12])
    last = run.history[-1] if run.history else None
    if last is None or last.event != KEPT:
        return told
    title = texts.message(last.reason_code or "", {"request_id": run.request_id}).title
    return texts("web.way.and", first=told, second=texts("web.run.accepted.kept", reason=title))


def _waiting(run: Run, texts: Texts) -> Message:
    facts = {"request_id": run.request_id, "run_id": run.run_id, "branch": run.place.branch}
    return texts.message("AWAITING_ACCEPTANCE", facts)


def _title(run: Run, message: Message, code: str, texts: Texts) -> tuple[str, tuple[str, ...]]:
    """Let the cause's title lead, where there is one (DESIGN §4)."""
    cause = run.error.cause if run.error else None
    if run.error is None or cause is None or code in _OWN_TITLE:
        return message.title, (code,)
    return texts.message(cause, message_facts(run, run.error, texts)).title, (code, cause)


def _asked(run: Run) -> str | None:
    return run.error.question if run.error else None


def _advice(run: Run, message: Message, texts: Texts) -> tuple[tuple[Piece, ...], ...]:
    """Return what the catalogue advises and this page has no button for."""
    kept = [
        advice
        for advice in message.actions
        if not any(piece.kind in _HERE for piece in advice.pieces if not isinstance(piece, str))
    ]
    return advice_pieces(kept, texts, {run.request_id: run.run_id})


def _offers(look: RunLook, run: Run, message: Message | None, texts: Texts, rules: RunRules) -> tuple[Offer, ...]:
    def means(way: Way) -> str:
        if way.kind is ActionKind.SHOW:
            return way.action.run_id or ""
        has_own = way.is_forced or (way.kind is ActionKind.ACCEPT and way.is_recommended)
        if way.kind is ActionKind.ACCEPT and not rules.has_tests:
            return texts("web.way.accept.untested", branch=branch)
        told = (advised(way, message, texts) if message and not has_own else None) or meaning(way, texts, branch)
        if way.kind is not ActionKind.RETRY_STEP or way.is_forced:
            return told
        used = texts("web.way.retries", count=min(run.work.retries, rules.step_retries), limit=rules.step_retries)
        return texts("web.way.and", first=told, second=used)

    branch = run.place.base_branch
    return tuple(offer_of(way, texts, branch)._replace(means=means(way)) for way in look.ways)
