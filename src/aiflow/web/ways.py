"""The ways on as buttons (DESIGN §4): one set of words and pictures, wherever a person decides about a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.issue_ways import is_issue
from aiflow.domain.next_action import ActionKind

if TYPE_CHECKING:
    from aiflow.domain.next_action import NextAction
    from aiflow.domain.runs.ways import Way
    from aiflow.messages import Message, Texts

ICONS = {
    ActionKind.ANSWER: "answer",
    ActionKind.RETRY_STEP: "retry",
    ActionKind.RESUME: "play",
    ActionKind.REPLAN: "replan",
    ActionKind.CANCEL: "stop",
    ActionKind.ACCEPT: "check",
    ActionKind.SEND_BACK: "back",
    ActionKind.UPDATE: "branch",
    ActionKind.SET: "check",
    ActionKind.RUN: "play",
    ActionKind.SHOW: "right",
}
# How a run is asked to continue; a button has one value, and may say two things.
_MODES = {ActionKind.UPDATE: "resume update", ActionKind.ANSWER: "resume"}


class Offer(NamedTuple):
    """A next step as a button; `means` is the sentence beside it, where there is room for one."""

    action: NextAction
    label: str
    icon: str
    mode: str
    is_recommended: bool = False
    is_forced: bool = False
    means: str = ""

    @property
    def kind(self) -> str:
        """What is done, as templates ask for it."""
        return self.action.kind.value


def offer_of(way: Way, texts: Texts, branch: str) -> Offer:
    """Put a next step into words; `branch` is what the run's work is to be merged into."""
    kind, more = way.kind, _form(way)
    value = way.action.options[0][1] if kind is ActionKind.SET else ""
    label = texts(f"web.way.{kind}{more}", branch=branch, value=value)
    how = next((name for name in ("keep_changes", "no_baseline") if way.action.has(name)), None)
    mode = f"{kind} {how}" if how else _MODES.get(kind, kind.value)
    return Offer(way.action, label, ICONS[kind], mode, way.is_recommended, way.is_forced)


def meaning(way: Way, texts: Texts, branch: str) -> str:
    """Say what a next step does."""
    return texts(f"web.way.{way.kind}.means{_form(way)}", branch=branch)


def _form(way: Way) -> str:
    """Distinguish the words of a way from those of another of its kind, as of an answer that is posted on an issue."""
    forms = {".forced": way.is_forced, ".keep": way.keeps_changes, ".no_baseline": way.has_no_baseline}
    if any(forms.values()):
        return next(form for form, is_meant in forms.items() if is_meant)
    return ".issue" if way.kind is ActionKind.ANSWER and is_issue(way.action.request_id) else ""


def advised(way: Way, message: Message, texts: Texts) -> str | None:
    """Return the catalogue's own sentence about a way, without the command that the button takes the place of."""
    for advice in message.actions:
        match advice.pieces:
            case (str(words), step) if not isinstance(step, str) and step.kind is way.kind:
                if all(step.has(name) == way.action.has(name) for name in ("keep_changes", "no_baseline")):
                    return texts("web.sentence", text=words.removesuffix(": "))
    return None
