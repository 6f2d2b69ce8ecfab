"""A run as the person in front of the terminal sees it: what happens now, the agent's output, and how it ended."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import click

from aiflow.cli.session import settings_to_repeat
from aiflow.cli.terminal.layout import wrap
from aiflow.cli.terminal.lines import event_text, local_now
from aiflow.cli.terminal.render import clean, heading, is_terminal, is_watched, paint, say, say_at_once, terminal_width
from aiflow.cli.views.auto_area import doing_of
from aiflow.cli.views.run_area import RunScene, draw_run
from aiflow.domain.agents.choices import numbered
from aiflow.domain.lifecycle import RunEvent, RunState
from aiflow.domain.runs.log_part import HEADING
from aiflow.domain.runs.stopped import outcome_code, way_out
from aiflow.domain.runs.warned import SETTINGS_CHANGED
from aiflow.messages.commands import command_line
from aiflow.usecases.runs.report import message_of, words_of
from aiflow.usecases.shapes.report_words import found_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from aiflow.cli.terminal.lines import Line
    from aiflow.cli.terminal.screen import Screen
    from aiflow.domain.runs.run import Run, RunError
    from aiflow.messages import Texts

RUN_COLOURS = {
    RunState.DONE: "green",
    RunState.NEEDS_INPUT: "yellow",
    RunState.FAILED: "red",
}


GUTTER = "        │ "
SNIPPET_LINES = 12


class RunView:
    """Writes a line for everything that happens to a run; on a terminal the agent's output as well."""

    def __init__(
        self, texts: Texts, *, is_quiet: bool, stopping: str, clock: Callable[[], datetime] = local_now
    ) -> None:
        self._texts = texts
        self._is_quiet = is_quiet
        self._stopping = stopping
        self._clock = clock
        self._run_id: str | None = None
        self._told = 0
        self._doing: object = None
        self._screen: Screen | None = None
        # The screen's thread reads these two; each is replaced as a whole.
        self._scene: RunScene | None = None
        self._notice: str | None = None

    def __enter__(self) -> Self:
        """Begin to show."""
        return self

    def __exit__(self, *_how: object) -> None:
        """Remove the live area, however it ended."""
        if self._screen is not None:
            self._screen.stop()

    def observe(self, run: Run) -> None:
        """Report what is new in a run; a closed output does not affect the run."""
        if self._is_quiet:
            return
        self._show_live(run)
        with self._unread():
            self._tell(run)

    def heard(self, _interrupts: object) -> None:
        """Say once that a wish to stop was heard; a signal handler calls this in the middle of anything.

        Nothing is locked and no buffered stream is touched here: the screen's thread shows it, or the system writes it.
        """
        if self._notice is None and self._screen is None:
            say_at_once(self._stopping)
        self._notice = self._stopping

    def _show_live(self, run: Run) -> None:
        """Show a live area below the lines, with what is being done and for how long already."""
        now, before = self._clock(), self._scene
        is_same = before is not None and doing_of(before.run) == doing_of(run)
        self._scene = RunScene(run, before.since if before and is_same else now, before.heard if before else now)
        if self._screen is None and is_watched():
            from aiflow.cli.terminal.screen import Screen

            self._screen = Screen(self._picture)
            self._screen.start()

    def _picture(self, columns: int) -> list[Line]:
        """Return the live area as it is now."""
        scene = self._scene
        return draw_run(replace(scene, notice=self._notice), self._texts, self._clock(), columns) if scene else []

    @contextlib.contextmanager
    def _unread(self) -> Iterator[None]:
        """Fall silent once the reader has left, as `| head` or a closed terminal does."""
        try:
            yield
        except OSError:
            self._is_quiet = True

    def _tell(self, run: Run) -> None:
        if run.run_id != self._run_id:
            # What brought it here is news: that it was recovered, or resumed.
            news = ("RECOVERED", "RESUMED")
            is_back = bool(run.history) and run.history[-1].event.startswith(news)
            self._run_id, self._told = run.run_id, len(run.history) - is_back
            heading(f"{run.request_id}  {clean(run.title)}")
            click.echo(f"  {run.run_id}  {self._texts('run.base', base=run.place.base_branch)}")
        for line in run.history[self._told :]:
            self._line(f"{line.at:%H:%M:%S}", event_text(line, self._texts, run))
        self._told = len(run.history)
        self._tell_call(run)

    def _tell_call(self, run: Run) -> None:
        """Report that a role is being called."""
        role = run.visit.calling
        doing = (run.current_step_id, role, run.calls_of(role)) if role else None
        if doing is not None and doing != self._doing:
            step = run.current_step
            place = f"{step.id} ({(run.current_index or 0) + 1}/{len(run.plan)}) {step.title}" if step else ""
            attempt = self._texts("run.attempt", number=run.calls_of(role)) if role and run.calls_of(role) > 1 else ""
            text = "  ".join(filter(None, (self._texts(f"role.{role}"), clean(place), attempt)))
            self._line(" " * 8, text)
        self._doing = doing

    @staticmethod
    def _line(when: str, text: str) -> None:
        say(text, f"{paint(when, 'bright_black')}  ")

    def follow(self, data: bytes) -> None:
        """Show the agent's output as it comes, on a terminal."""
        if self._is_quiet or not is_terminal():
            return
        if self._scene is not None:
            self._scene = replace(self._scene, heard=self._clock())
        with self._unread():
            width = max(20, terminal_width() - len(GUTTER))
            for line in data.decode("utf-8", "replace").splitlines():
                for part in [] if line.startswith(HEADING) else wrap(clean(line), width) or [""]:
                    click.echo(paint(GUTTER + part, "bright_black"))

    def finish(self, run: Run) -> None:
        """Report how a run ended and what to do now."""
        show_end(run, self._texts)


def show_end(run: Run, texts: Texts) -> None:
    """Write the state of a run: why, the question, the branch, the next step."""
    click.echo()
    why, code = run.error, outcome_code(run)
    state = paint(run.state, RUN_COLOURS.get(run.state), is_bold=True)
    if code is None:
        click.echo(state)
        _show_accepted(run, texts)
        _show_settings(run, texts)
        return
    plain = {"request_id": run.request_id, "branch": run.place.branch}
    message = message_of(run, why, texts) if why else texts.message(code, plain)
    say(message.title, f"{state}  {code}: ")
    say(message.summary, "  ")
    if why is not None:
        _show_why(why, message.summary, texts)
    _show_branch(run, texts)
    for found in found_lines(run.follow_ups, texts):
        say(found.removeprefix("- "), f"  {texts('report.found')}: ")
    _show_hidden(run, texts)
    if code != SETTINGS_CHANGED:
        _show_settings(run, texts)
    mending = way_out(run).action
    if mending is not None:
        say(command_line(mending.with_settings(settings_to_repeat())), "  → ")
    for advice in message.actions:
        if mending is None or not any(step.includes(mending) for step in advice.steps):
            say(advice.with_settings(settings_to_repeat()).typed, "  → ")


def _show_why(why: RunError, summary: str, texts: Texts) -> None:
    """Write the cause of a stop: the question with its choices, or what was seen."""
    if why.cause:
        say(texts("report.cause", cause=why.cause, title=texts.message(why.cause, {}).title), "  ")
    if why.question:
        say(why.question, f"  {texts('run.question')} ")
        for choice in numbered(why.choices):
            say(choice, "    ")
    elif (words := words_of(why, texts)) and words not in summary:
        for line in (*words.splitlines(), *why.evidence.stderr_snippet.splitlines()[-SNIPPET_LINES:]):
            say(line, "  > ")


def _show_accepted(run: Run, texts: Texts) -> None:
    if run.accepted_as:
        key = "run.accepted_empty" if run.was_empty else "run.accepted"
        say(texts(key, base=run.place.base_branch, commit=run.accepted_as[:12]), "  ")


def _show_settings(run: Run, texts: Texts) -> None:
    """Say that the run changed how aiflow itself works here."""
    if SETTINGS_CHANGED in run.warnings:
        key = "run.settings_accepted" if run.accepted_as else "run.settings_changed"
        say(texts(key, command=f"aiflow diff {run.request_id}"), f"  {SETTINGS_CHANGED}: ")


def _show_hidden(run: Run, texts: Texts) -> None:
    """Say again, where the run has ended, that the agent did not get all of the text."""
    told = [line for line in run.history if line.event == RunEvent.TEXT_WITHHELD]
    if told:
        say(event_text(told[-1], texts), f"  {told[-1].reason_code}: ")


def _show_branch(run: Run, texts: Texts) -> None:
    done = sum(work.is_done for work in run.steps.values())
    if run.plan:
        click.echo("  " + texts("run.steps_done", done=done, total=len(run.plan)))
    if run.has_commits or run.state is RunState.DONE:
        click.echo("  " + texts("run.branch", branch=run.place.branch))
    if run.state is not RunState.DONE and run.current_step_id is not None and not run.is_active:
        click.echo("  " + texts("run.worktree", path=run.place.path))
    if run.compare_url and run.state is RunState.DONE:
        click.echo("  " + run.compare_url)
    if run.pull_url:
        say(texts("report.pull", url=run.pull_url), "  ")
