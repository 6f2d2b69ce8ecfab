"""What a person can do next, as a value: a terminal makes a command of it, a page a button, an issue a sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a person has still to fill in: the words of an answer, of a comment, of a prompt.
OPEN = "…"


class ActionKind(StrEnum):
    """Everything that aiflow ever advises; `SHELL` is a command of another program, such as git.

    `AT_GITHUB` is done by hand on an issue: no command does it.
    """

    RUN = "run"
    RESUME = "resume"
    RETRY_STEP = "retry_step"
    REPLAN = "replan"
    UPDATE = "update"
    ANSWER = "answer"
    CANCEL = "cancel"
    ACCEPT = "accept"
    UNDO = "undo"
    SEND_BACK = "send_back"
    WHY = "why"
    SHOW = "show"
    LOGS = "logs"
    REPORT = "report"
    DIFF = "diff"
    SET = "set"
    NEW = "new"
    LIST = "list"
    NEXT = "next"
    FORECAST = "forecast"
    RUNS = "runs"
    AUTO = "auto"
    STOP = "stop"
    LOCKS = "locks"
    DOCTOR = "doctor"
    AGENTS = "agents"
    SETTINGS = "settings"
    INIT = "init"
    DEMO = "demo"
    QUEUE_ADD = "queue_add"
    QUEUE_LIST = "queue_list"
    QUEUE_SHOW = "queue_show"
    QUEUE_CANCEL = "queue_cancel"
    RUNNER = "runner"
    UP = "up"
    OPEN = "open"
    SESSIONS = "sessions"
    SERVICE_INSTALL = "service_install"
    SERVICE_STATUS = "service_status"
    STATUS = "status"
    STORE_START = "store_start"
    STORE_STATUS = "store_status"
    STORE_LOGS = "store_logs"
    STORE_ROTATE_KEY = "store_rotate_key"
    ISSUES_SYNC = "issues_sync"
    ISSUES_SHOW = "issues_show"
    ISSUES_LABELS = "issues_labels"
    ISSUES_DOCTOR = "issues_doctor"
    AT_GITHUB = "at_github"
    SHELL = "shell"


# Those that are about one request, run or task: without a name they say nothing.
ABOUT_SOMETHING = frozenset(
    {
        *(ActionKind.RUN, ActionKind.RESUME, ActionKind.RETRY_STEP, ActionKind.REPLAN, ActionKind.UPDATE),
        *(ActionKind.ANSWER, ActionKind.CANCEL, ActionKind.ACCEPT, ActionKind.SEND_BACK, ActionKind.WHY),
        *(ActionKind.UNDO, ActionKind.SHOW, ActionKind.LOGS, ActionKind.REPORT, ActionKind.DIFF, ActionKind.SET),
        *(ActionKind.QUEUE_SHOW, ActionKind.QUEUE_CANCEL, ActionKind.ISSUES_SHOW, ActionKind.AT_GITHUB),
    }
)
# What is typed nowhere.
NOT_TYPED = frozenset({ActionKind.SHELL, ActionKind.AT_GITHUB})
# Those that let an agent work: what a person set for one call counts for the next one, too.
LETS_WORK = frozenset(
    {
        *(ActionKind.RUN, ActionKind.RESUME, ActionKind.RETRY_STEP, ActionKind.REPLAN),
        *(ActionKind.UPDATE, ActionKind.ANSWER, ActionKind.AUTO),
    }
)
# The option that is a setting for one call, `KEY=VALUE`.
SETTING = "setting"
OF_THE_QUEUE = frozenset({ActionKind.QUEUE_ADD, ActionKind.QUEUE_LIST, ActionKind.QUEUE_SHOW, ActionKind.QUEUE_CANCEL})


@dataclass(frozen=True, slots=True)
class NextAction:
    """One thing a person can do: what, to which request, run or task, and how.

    An option is a name with its value; one that is only said or not has an empty value. Those of `SET` are the keys and
    values to be set; that of `SHELL` is the line to be typed.
    """

    kind: ActionKind
    request_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    @property
    def target(self) -> str | None:
        """Whom it is about."""
        return self.task_id or self.run_id or self.request_id

    def has(self, option: str) -> bool:
        """Return whether it has an option."""
        return any(name == option for name, _ in self.options)

    def having(self, **options: str) -> NextAction:
        """Return it with more options."""
        return replace(self, options=(*self.options, *options.items()))

    def with_settings(self, settings: Sequence[str]) -> NextAction:
        """Return it with the settings of a call, where it lets an agent work; its own come first, and stay."""
        if self.kind not in LETS_WORK:
            return self
        own = {value.partition("=")[0] for name, value in self.options if name == SETTING}
        more = tuple((SETTING, each) for each in settings if each.partition("=")[0] not in own)
        return replace(self, options=(*self.options, *more))

    def without_settings(self) -> NextAction:
        """Return it without what is set for one call only."""
        return replace(self, options=tuple(option for option in self.options if option[0] != SETTING))

    def includes(self, other: NextAction) -> bool:
        """Return whether this is the other one, or the other one with more options."""
        is_same = (self.kind, self.target) == (other.kind, other.target)
        return is_same and self.options[: len(other.options)] == other.options


# Work on what is in the queue.
START_RUNNER = NextAction(ActionKind.RUNNER)


def shell(line: str) -> NextAction:
    """Return a command of another program."""
    return NextAction(ActionKind.SHELL, options=(("line", line),))


def set_status(request_id: str, status: str) -> NextAction:
    """Return to give a request a status."""
    return NextAction(ActionKind.SET, request_id, options=(("status", status),))
