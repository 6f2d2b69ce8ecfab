"""What an agent is not given (SEC): every text of a call is cleaned here, and what is kept back is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import RunEvent
from aiflow.domain.runs.events import happen
from aiflow.domain.untrusted import CleanText, HiddenKind, clean, clean_plain, reveal_plain, tally

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from aiflow.domain.agents.call import AgentCall, Brief, Feedback
    from aiflow.domain.agents.former import Former
    from aiflow.domain.agents.plan import PlanStep
    from aiflow.domain.runs.run import Run

    Counts = Mapping[HiddenKind, int]

HIDDEN_TEXT = "HIDDEN_TEXT"
SENT_BACK = "SENT_BACK"


class Withheld(NamedTuple):
    """What was kept from an agent: of what people wrote, and of what programs put out."""

    written: Counts
    put_out: Counts


def without_hidden(call: AgentCall) -> tuple[AgentCall, Withheld]:
    """Return a call with nothing in it that a person would not see, and what was kept back.

    People write Markdown, which a page shows; output and plans are plain text. A reviewer has to know of an invisible
    character in a change, so there each is written out as its number.
    """
    written, put_out = _Sieve(clean), _Sieve(clean_plain)
    kept = replace(
        call,
        brief=_asked(call.brief, written),
        answers=tuple((put_out(question), written(answer)) for question, answer in call.answers),
        feedback=tuple(_told(told, written, put_out) for told in call.feedback),
        plan=tuple(_planned(step, put_out) for step in call.plan),
        step=_planned(call.step, put_out) if call.step is not None else None,
        changes=_revealed(call.changes),
        done={step_id: replace(step, summary=put_out(step.summary)) for step_id, step in call.done.items()},
        summary=put_out(call.summary),
        test_output=put_out(call.test_output),
        whole=_revealed(call.whole) if call.whole else None,
        former=_known(call.former, put_out) if call.former else None,
        former_diff=_revealed(call.former_diff) if call.former_diff else None,
    )
    return kept, Withheld(tally(written.all), tally(put_out.all))


def _revealed(diff: Callable[[], str]) -> Callable[[], str]:
    return lambda: reveal_plain(diff())


class _Sieve:
    """Cleans texts, and remembers what it found."""

    def __init__(self, how: Callable[[str], CleanText]) -> None:
        self._how = how
        self.all: list[CleanText] = []

    def __call__(self, text: str) -> str:
        cleaned = self._how(text)
        self.all.append(cleaned)
        return cleaned.text


def _asked(brief: Brief, written: _Sieve) -> Brief:
    title = clean(brief.title).text if brief.title in brief.body else written(brief.title)  # a heading counts once
    return replace(brief, title=title, body=written(brief.body), labels=tuple(map(written, brief.labels)))


def _told(told: Feedback, written: _Sieve, put_out: _Sieve) -> Feedback:
    summary = written if told.reason_code == SENT_BACK else put_out
    return replace(told, summary=summary(told.summary), detail=put_out(told.detail))


def _planned(step: PlanStep, put_out: _Sieve) -> PlanStep:
    return replace(step, title=put_out(step.title), instructions=put_out(step.instructions))


def _known(former: Former, put_out: _Sieve) -> Former:
    steps = (step._replace(title=put_out(step.title), summary=put_out(step.summary)) for step in former.steps)
    return replace(former, steps=tuple(steps))


def withheld(run: Run, counts: Counts, now: datetime) -> Run:
    """Something that people wrote is kept from the agents of a run: known once, and again when it is something else."""
    note = note_of(counts)
    if not counts or any(line.event == RunEvent.TEXT_WITHHELD and line.note == note for line in run.history):
        return run
    warned = replace(run, warnings=tuple(dict.fromkeys((*run.warnings, HIDDEN_TEXT))))
    return happen(warned, RunEvent.TEXT_WITHHELD, now, HIDDEN_TEXT, note)


def note_of(counts: Counts) -> str:
    """Write counts as a note in a run's history."""
    return " ".join(f"{kind}={count}" for kind, count in counts.items())


def counts_in(note: str | None) -> dict[HiddenKind, int]:
    """Read counts from such a note; what is none is left out."""
    pairs = (each.partition("=") for each in (note or "").split())
    known = {kind.value: kind for kind in HiddenKind}
    return {known[name]: int(number) for name, _, number in pairs if name in known and number.isdecimal()}


def counts_of(run: Run) -> dict[HiddenKind, int]:
    """Return what was last found to be kept from a run's agents."""
    notes = [line.note for line in run.history if line.event == RunEvent.TEXT_WITHHELD]
    return counts_in(notes[-1]) if notes else {}
