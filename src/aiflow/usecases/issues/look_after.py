"""Look after issues (ISS-10): read what changed, and do what is to be done about each, and about its runs here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.agents.choices import picked
from aiflow.domain.issue_ways import request_id_of
from aiflow.domain.issues.repository import LookedAfter
from aiflow.domain.issues.view import AcceptMerged, CancelRun, CloseRun, NotePull
from aiflow.errors import AiflowError, ConflictError
from aiflow.usecases.issues.merged import accept_merged, note_pull_of
from aiflow.usecases.runs.accept import close_for_retry
from aiflow.usecases.runs.cancel import ask_to_cancel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aiflow.domain.issues.view import RunDeed
    from aiflow.ports.issues import IssueCare
    from aiflow.usecases.engine import Engine

# What keeps every call from being answered: no other issue is tried then. Anything else is about one issue alone.
ABOUT_ALL = frozenset(
    {
        *("GITHUB_NOT_INSTALLED", "GITHUB_NOT_SIGNED_IN", "GITHUB_TOKEN_INVALID", "GITHUB_NOT_FOUND", "GITHUB_MOVED"),
        *("GITHUB_RATE_LIMITED", "GITHUB_UNREACHABLE", "DISK_FULL", "IO_ERROR"),
    }
)


class Sighting(NamedTuple):
    """One look: what it came to, what it asks of runs here, and the first trouble it met."""

    looked: LookedAfter
    deeds: tuple[tuple[int, RunDeed], ...] = ()
    trouble: AiflowError | None = None


def look_after_issues(engine: Engine, care: IssueCare, *, is_full: bool = False) -> LookedAfter:
    """Read what changed and do what is to be done; a quiet look is one call. Trouble is raised after all of it."""
    seen = look_at_issues(care, is_full=is_full)
    do_about_runs(engine, seen.deeds)
    if seen.trouble is not None:
        raise seen.trouble
    return seen.looked


def look_at_issues(care: IssueCare, *, is_full: bool = False, is_over: Callable[[], bool] = lambda: False) -> Sighting:
    """Read what changed and do what is to be done at GitHub; what concerns runs is left to the caller."""
    try:
        synced = care.sync(is_full=is_full)
        numbers = care.pending()
    except AiflowError as error:
        return Sighting(LookedAfter((), (), (), is_full=False), trouble=error)
    seen = tend_issues(care, (*numbers, *synced.gone), is_over)
    return seen._replace(looked=LookedAfter(synced.changed, synced.gone, seen.looked.tended, synced.is_full))


def tend_issues(care: IssueCare, numbers: Iterable[int], is_over: Callable[[], bool] = lambda: False) -> Sighting:
    """Look at these issues and do what is to be done there; trouble with one does not keep the others from it."""
    tended: list[int] = []
    deeds: list[tuple[int, RunDeed]] = []
    trouble: AiflowError | None = None
    for number in numbers:
        if is_over():
            break
        try:
            deeds += ((number, deed) for deed in care.tend(number))
        except AiflowError as error:
            trouble = trouble or error
            if error.reason_code in ABOUT_ALL:
                trouble = error
                break
        else:
            tended.append(number)
    return Sighting(LookedAfter((), (), tuple(tended), is_full=False), tuple(deeds), trouble)


def do_about_runs(engine: Engine, deeds: Iterable[tuple[int, RunDeed]]) -> None:
    """Do what issues ask of runs here; what was interrupted is continued by whatever starts runs (RUN-11)."""
    for number, deed in deeds:
        run = engine.runs.load(request_id_of(number), deed.run_id)
        try:
            if run is not None and isinstance(deed, CancelRun) and run.is_active:
                ask_to_cancel(engine, run)
            elif run is not None and isinstance(deed, CloseRun):
                said = engine.source.feedback(request_id_of(number), run.changed_at)
                words = "\n\n".join(each.summary for each in said)
                words = picked(words, run.error.choices if run.error else ())  # its comment shows them with numbers
                close_for_retry(engine, run, words or engine.voice.texts("issue.retried"))
            elif run is not None and isinstance(deed, NotePull):
                note_pull_of(engine, run, deed.url)
            elif run is not None and isinstance(deed, AcceptMerged):
                accept_merged(engine, run, deed.commit, deed.url)
        except ConflictError:  # somebody has it just now: the next look does it
            continue
