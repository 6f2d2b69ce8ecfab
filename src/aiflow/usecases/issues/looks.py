"""When issues are looked at (ISS-1): polling is the floor and always on; a hint only makes a look come sooner.

What another process of this checkout read counts as well, so that a server and an auto-run beside it poll once. Hints
are numbers and nothing else; many of them are one look, and however many come, the poll has its turn.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.usecases.issues.look_after import ABOUT_ALL, Sighting, do_about_runs, look_at_issues, tend_issues

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.errors import AiflowError
    from aiflow.ports import Journal, Time
    from aiflow.ports.issues import IssueCare
    from aiflow.usecases.engine import Engine

# However many hints come, there is this much time between two looks, and so many issues are looked at in one.
BETWEEN_SECONDS = 1.0
HINTS_AT_ONCE = 20
# More hints than that at once are no hints any more: the next poll finds all of it.
MOST_HINTS = 1000
EAR_SECONDS = 0.2
_LONG = 1_000_000.0


class IssueLooks:
    """The looks of one process; `heard` gets trouble once it begins, and None once it is over."""

    def __init__(self, time: Time, heard: Callable[[AiflowError | None], None] = lambda _trouble: None) -> None:
        self.heard = heard
        self.count = 0
        self.trouble: AiflowError | None = None
        self._time = time
        self._guard = time.mutex()
        self._hints: dict[int, None] = {}
        self._looked = self._polled = float("-inf")

    @property
    def is_cut_off(self) -> bool:
        """Whether GitHub answers nothing at the moment, as far as the last look knows."""
        return self.trouble is not None and self.trouble.reason_code in ABOUT_ALL

    def hint(self, number: int) -> None:
        """Let an issue be looked at soon."""
        with self._guard:
            if len(self._hints) < MOST_HINTS:
                self._hints[number] = None

    @property
    def hinted(self) -> tuple[int, ...]:
        """The issues that are to be looked at soon."""
        with self._guard:
            return tuple(self._hints)

    def due_in(self, care: IssueCare, poll_seconds: float) -> float:
        """Return the seconds until the next look."""
        now = self._time.monotonic()
        poll = max(self._polled + poll_seconds - now, self._others_poll_in(care, poll_seconds))
        pause = max(self._looked + BETWEEN_SECONDS - now, 0.0)
        return pause if self._hints else max(poll, pause)

    def look(
        self, care: IssueCare, poll_seconds: float, is_over: Callable[[], bool] = lambda: False
    ) -> Sighting | None:
        """Look at what was hinted at, and at everything that changed if that is due; None if it is no time yet."""
        if self.due_in(care, poll_seconds) > 0:
            return None
        hinted = self._take_hints()
        self._looked = self._time.monotonic()
        seen = tend_issues(care, hinted, is_over) if hinted else None
        is_poll_due = self._polled + poll_seconds <= self._looked
        if is_poll_due and not is_over():
            self._polled = self._looked
            return self._known(look_at_issues(care, is_over=is_over), seen)
        return self._known(seen, None) if seen is not None else None

    def look_now(self, care: IssueCare, is_over: Callable[[], bool] = lambda: False) -> Sighting:
        """Look at everything that changed, whether that is due or not."""
        self._looked = self._polled = self._time.monotonic()
        return self._known(look_at_issues(care, is_over=is_over), None)

    def _known(self, seen: Sighting | None, before: Sighting | None) -> Sighting:
        """Note the result of a look; trouble that begins or is over is reported."""
        assert seen is not None
        if before is not None:
            tended = tuple(dict.fromkeys((*before.looked.tended, *seen.looked.tended)))
            trouble = seen.trouble or before.trouble
            seen = Sighting(seen.looked._replace(tended=tended), (*before.deeds, *seen.deeds), trouble)
        self.note(seen.trouble)
        self.count += 1
        return seen

    def note(self, trouble: AiflowError | None) -> None:
        """Note GitHub's state, and report a change."""
        known, self.trouble = self.trouble, trouble
        if (known.reason_code if known else None) != (trouble.reason_code if trouble else None):
            self.heard(trouble)

    def _take_hints(self) -> list[int]:
        with self._guard:
            taken = list(self._hints)[:HINTS_AT_ONCE]
            for number in taken:
                del self._hints[number]
        return taken

    def _others_poll_in(self, care: IssueCare, poll_seconds: float) -> float:
        """Return how long what another process read last is fresh; the first look of a process is its own."""
        at = care.looked_at() if self._polled > float("-inf") else None
        age = self._time.now() - at if at is not None else timedelta(seconds=-1)
        return max(poll_seconds - age.total_seconds(), 0.0) if age >= timedelta() else 0.0


def look_beside(
    engine: Engine, look: Callable[[Callable[[], bool]], Sighting | None], is_over: Callable[[], bool]
) -> Sighting | None:
    """Have a look without being deaf meanwhile: GitHub may take long, and a request to end is obeyed.

    The look is made beside, and what it asks of runs is done here.
    """
    made: list[Sighting | None] = []
    failed: list[Exception] = []

    def turn() -> float:
        try:
            made.append(look(is_over))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where somebody hears it
            failed.append(error)
        return _LONG

    beside = engine.time.beside("issues", turn)
    beside.start()
    while not made and not failed and not is_over():
        engine.time.sleep(EAR_SECONDS)
    beside.leave()
    if failed:
        raise failed[0]
    seen = made[0] if made else None
    if seen is not None:
        do_about_runs(engine, seen.deeds)
    return seen


def record_trouble(journal: Journal, time: Time, trouble: AiflowError | None) -> None:
    """Write into the journal that GitHub cannot be worked with, or can be again."""
    event = "github_trouble" if trouble is not None else "github_back"
    problem = trouble.context.get("problem") if trouble is not None else None
    data = {"event": event} | ({"problem": str(problem)} if problem else {})
    code = trouble.reason_code if trouble is not None else None
    journal.append(Activity(time.now(), ActivityKind.TRANSITION, Actor.ISSUES, reason_code=code, data=data))
