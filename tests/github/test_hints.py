"""What people do to an issue in each of its states, and hints of it twice, early, out of order, late or lost (ISS-10).

Issue and run agree in the end, and how the news came makes no difference: a hint is only a reason to look.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aiflow.domain.lifecycle import RunOutcome
from github.histories import GH_1, NUMBER, Runner, World
from github.scene import RUNNER

QUEUED, RETRY, RUNNING, BLOCKED = "agent:queued", "agent:retry", "agent:running", "agent:blocked"
Deed = Callable[[World], object]


def _label(name: str) -> Deed:
    return lambda world: world.do("label", "maya", name)


def _unlabel(*names: str) -> Deed:
    return lambda world: [world.hub.unlabel(NUMBER, name, "maya") for name in names]


def _close(reason: str) -> Deed:
    return lambda world: world.hub.close(NUMBER, "maya", reason)


DEEDS: dict[str, tuple[Deed, ...]] = {
    "closed as completed": (_close("completed"),),
    "closed as not planned": (_close("not_planned"),),
    "closed and reopened": (_close("completed"), lambda world: world.hub.reopen(NUMBER, "maya")),
    "every label taken away": (_unlabel(QUEUED, RETRY, RUNNING, BLOCKED),),
    "queued by hand": (_label(QUEUED),),
    "retry by hand": (_label(RETRY),),
    "running by hand": (_label(RUNNING),),
    "blocked by hand": (_label(BLOCKED),),
    "asked again": (lambda world: world.hub.comment(NUMBER, "/retry", "maya"),),
    "cancelled": (lambda world: world.hub.comment(NUMBER, "/cancel", "maya"),),
    "transferred": (lambda world: world.hub.transfer(NUMBER),),
    "deleted": (lambda world: world.hub.delete(NUMBER),),
}
STATES: dict[str, RunOutcome | None] = {
    "queued": None,
    "running": RunOutcome.ACTIVE,
    "blocked": RunOutcome.NEEDS_INPUT,
    "waiting": RunOutcome.AWAITING_ACCEPTANCE,
}


class Stage:
    """An issue in one of its states in the first checkout; the second only looks."""

    def __init__(self, state: str) -> None:
        self.world = World("maya", logins=(RUNNER, "aiflow-two"))
        self.one, self.two = self.world.runners
        self.world.do("label", "maya", QUEUED)
        self.look()
        if STATES[state] is not None:
            self.world.do("start", 0, "")
        if STATES[state] not in (None, RunOutcome.ACTIVE):
            self.world.do("wait", 60, "")
            self.world.do("finish", 0, STATES[state])
            self.world.do("wait", 60, "")
        self.look()

    def look(self) -> None:
        for runner in (self.one, self.two):
            runner.act(runner.look_after)

    def restart(self) -> None:
        """Let the process die, and another one continue its run."""
        self.one.die()
        if self.one.runs:
            self.one.act(self.one.start)

    def hint(self, runner: Runner) -> None:
        """A webhook's delivery: look at that issue now."""
        runner.act(lambda: self._tend(runner))

    @staticmethod
    def _tend(runner: Runner) -> None:
        runner.lead(runner.work.tend(NUMBER))

    def end(self) -> tuple[list[str], str, str]:
        """Let the polls come, and the run obey what it was asked; then say where the issue and its run are."""
        is_gone = bool(self.world.hub.rows[NUMBER].gone)
        for wait in (60, 700 if is_gone else 70):
            self.world.scene.time.sleep(wait)
            self.look()
            if self.one.working is not None and self.one.working.is_stopping:
                self.one.act(lambda: self.one.finish(RunOutcome.NEEDS_INPUT))
        if not is_gone:
            self.world.settle((60, 1))
        outcome = next((run.outcome.value for run in self.one.runs.values()), "-")
        labels = self.world.hub.rows[NUMBER].label_names()
        statuses = {runner.source.status(GH_1) for runner in (self.one, self.two)}
        assert len(statuses) == 1, statuses
        status = statuses.pop()
        return labels, status.value if status else "gone", outcome


def news(stage: Stage, deeds: tuple[Deed, ...], how: str) -> None:
    """Let people act, and the news of it come in some way."""
    if how == "early":
        stage.hint(stage.one)
    for deed in deeds:
        stage.world.scene.time.sleep(10)
        deed(stage.world)
        for runner in (stage.one, stage.two, stage.one) if how == "twice" else ():
            stage.hint(runner)
    if how == "in a restart":
        stage.restart()
    if how in ("late", "in a restart"):
        stage.world.scene.time.sleep(120)
        for runner in (stage.two, stage.one):
            stage.hint(runner)


# What the issue is in the end: its labels, its status, and what came of the run that it had. A closed issue has no
# agent label, one whose label was taken away is a draft, a label alone is no decision, and what is gone has no run.
EXPECTED: dict[str, dict[str, tuple[list[str], str, str]]] = {
    "closed as completed": {"queued": ([], "done", "-"), "running": ([], "done", "cancelled"),
                            "blocked": ([], "done", "needs_input"), "waiting": ([], "done", "awaiting_acceptance")},
    "closed as not planned": {"queued": ([], "archived", "-"), "running": ([], "archived", "cancelled"),
                              "blocked": ([], "archived", "needs_input"), "waiting": ([], "archived", "awaiting_acceptance")},
    "closed and reopened": {"queued": ([], "draft", "-"), "running": ([], "draft", "cancelled"),
                            "blocked": ([], "draft", "needs_input"), "waiting": ([], "draft", "awaiting_acceptance")},
    "every label taken away": {"queued": ([], "draft", "-"), "running": ([], "draft", "cancelled"),
                               "blocked": ([], "draft", "needs_input"), "waiting": ([], "draft", "awaiting_acceptance")},
    "queued by hand": {"queued": ([QUEUED], "ready", "-"), "running": ([RUNNING], "running", "active"),
                       "blocked": ([BLOCKED], "blocked", "needs_input"), "waiting": ([RUNNING], "blocked", "awaiting_acceptance")},
    "retry by hand": {"queued": ([RETRY], "ready", "-"), "running": ([RUNNING], "running", "active"),
                      "blocked": ([BLOCKED], "blocked", "needs_input"), "waiting": ([RUNNING], "blocked", "awaiting_acceptance")},
    "running by hand": {"queued": ([QUEUED], "ready", "-"), "running": ([RUNNING], "running", "active"),
                        "blocked": ([BLOCKED], "blocked", "needs_input"), "waiting": ([RUNNING], "blocked", "awaiting_acceptance")},
    "blocked by hand": {"queued": ([BLOCKED], "blocked", "-"), "running": ([BLOCKED], "blocked", "cancelled"),
                        "blocked": ([BLOCKED], "blocked", "needs_input"), "waiting": ([BLOCKED], "blocked", "awaiting_acceptance")},
    "asked again": {"queued": ([RETRY], "ready", "-"), "running": ([RUNNING], "running", "active"),
                    "blocked": ([RETRY], "ready", "sent_back"), "waiting": ([RETRY], "ready", "sent_back")},
    "cancelled": {"queued": ([], "draft", "-"), "running": ([], "draft", "cancelled"),
                  "blocked": ([], "draft", "needs_input"), "waiting": ([], "draft", "awaiting_acceptance")},
    "transferred": {"queued": ([QUEUED], "gone", "-"), "running": ([RUNNING], "gone", "cancelled"),
                    "blocked": ([BLOCKED], "gone", "needs_input"), "waiting": ([RUNNING], "gone", "awaiting_acceptance")},
    "deleted": {"queued": ([QUEUED], "gone", "-"), "running": ([RUNNING], "gone", "cancelled"),
                "blocked": ([BLOCKED], "gone", "needs_input"), "waiting": ([RUNNING], "gone", "awaiting_acceptance")},
}  # fmt: skip


@pytest.mark.spec("ISS-9", "ISS-10")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("how", ["lost", "twice", "early", "late", "in a restart"])
def test_issue_and_run_agree_however_the_news_comes(state: str, how: str) -> None:
    ends = {}
    for deed, acts in DEEDS.items():
        stage = Stage(state)
        news(stage, acts, how)
        ends[deed] = stage.end()
        stage.world.close()
    assert ends == {deed: expected[state] for deed, expected in EXPECTED.items()}
