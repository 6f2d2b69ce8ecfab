"""The lines below all others that say what a run does at this moment; pure: drawn from a scene and a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from aiflow.cli.terminal.lines import GREY, Line, LinePart, clock_text, fitted
from aiflow.cli.views.auto_area import ECHO, doing_line, row

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.runs.run import Run
    from aiflow.messages import Texts

# An agent that thinks prints nothing for a while; after that, the person wants to know since when.
SILENCE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class RunScene:
    """What the area is drawn from: the run, since when it does what it does, when it was last heard, what to say."""

    run: Run
    since: datetime
    heard: datetime
    notice: str | None = None


def draw_run(scene: RunScene, texts: Texts, now: datetime, columns: int) -> list[Line]:
    """Return the lines of the area, cut to a terminal's columns."""
    doing = doing_line(scene.run, texts)
    silent = now - max(scene.since, scene.heard)
    is_silent = silent >= SILENCE and scene.run.waits_until is None
    quiet = LinePart(f"  {texts('run.silent', time=clock_text(silent))}" if is_silent else "", "yellow")
    hint = LinePart(scene.notice, "yellow") if scene.notice else LinePart(texts("run.hint"), GREY)
    # One column stays free: a full line would begin the next on some terminals. The last leaves room for the ^C.
    room = columns - 1
    clock = row(clock_text(now - scene.since), *doing, quiet)
    return [(), fitted(clock, room), fitted(row("", hint), room - ECHO)]
