"""A checkout whose settings name the repository of a hub, and people in front of both, all in the test's own process."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from aiflow.adapters.github_issues import connect, limits, line, start
from aiflow.cli.main import run as run_program
from aiflow.cli.session import current_texts, use_texts
from aiflow.messages import Texts
from e2e.bench import Bench
from github.answering import GitHub
from github.hub import Hub
from github.scene import PEOPLE, RUNNER

# Nobody is there: everything of this process calls the hub directly.
API_URL = "https://github.example/api"


class IssuePlace:
    """The hub, its API, and the checkout; `ask` lets the agent ask before it works."""

    def __init__(self, bench: Bench, hub: Hub, api: GitHub, url: str) -> None:
        self.bench, self.hub, self.api, self.url = bench, hub, api, url
        self.aiflow = bench.aiflow
        self.aiflow.environ["GITHUB_TOKEN"] = next(token for token, login in hub.tokens.items() if login == RUNNER)
        self.set_up()
        bench.commit()
        self.terminal: Terminal | None = None

    def set_up(self, more: str = "") -> None:
        """Write the settings, with these lines below `[github]`."""
        self.bench.configure(f'[github]\nrepo = "{self.hub.repo}"\napi_url = "{self.url}"\n{more}')

    def opened(self, title: str = "Say hello", body: str = "Please.", *labels: str, by: str = "maya") -> int:
        """Open an issue, with labels of the same person."""
        number = self.hub.open_issue(title, body, by=by)
        for label in labels:
            self.hub.label(number, label, by)
        return number

    def queued(self, title: str = "Say hello") -> int:
        """Open an issue that is ready."""
        return self.opened(title, "Please.", "P0", "agent:queued")

    @property
    def here(self) -> Terminal:
        """The program in this process."""
        assert self.terminal is not None
        return self.terminal

    def sync(self) -> Any:
        """Have the checkout look."""
        return self.here.json("issues", "sync")

    def asks(self, question: str = "Which colour?") -> None:
        """Let the implementer ask at its first attempt of the first run only."""
        self.bench.agent.does("implementer", f"ask({question!r})")

    def works(self) -> None:
        """Let the agent do its work again."""
        self.bench.agent.forget()

    def stopped(self) -> str:
        """Give an issue whose run asked something; returns its request id."""
        number = self.queued()
        self.sync()
        self.asks()
        assert self.here.json("run", f"GH-{number}", code=5)["reason_code"] == "NEEDS_CLARIFICATION"
        self.works()
        return f"GH-{number}"

    def later(self, number: int, hours: float) -> None:
        """Let time pass on an issue: all that happened there is so much longer ago."""
        row, ago = self.hub.rows[number], timedelta(hours=hours)
        row.created_at, row.updated_at = row.created_at - ago, row.updated_at - ago
        for event in row.events:
            event.at -= ago
        for comment in row.comments:
            comment.created_at, comment.updated_at = comment.created_at - ago, comment.updated_at - ago
        self.hub.touch(row)

    def said(self, number: int) -> list[str]:
        """Return the comments of an issue."""
        return [comment.body for comment in self.hub.rows[number].comments]


@contextlib.contextmanager
def issue_place(
    bench: Bench, patch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str] | None = None, url: str = API_URL
) -> Iterator[IssuePlace]:
    """Give a hub that everything of this process calls directly; nobody waits between two writes.

    `url` is where other processes find it, if it is served.
    """
    patch.setattr(limits, "BETWEEN_WRITES_SECONDS", 0.0)
    patch.setattr(start, "SETTLED_SECONDS", 0.0)
    patch.setattr(line, "PAUSES_SECONDS", (0.0, 0.0))
    hub = Hub()
    api = GitHub(hub, url)
    for login, permission in PEOPLE.items():
        hub.person(login, permission)
    hub.person(RUNNER, "write")
    patch.setattr(connect, "HttpTransport", lambda _url: api)
    made = IssuePlace(bench, hub, api, url)
    made.terminal = Terminal(made, capfd) if capfd is not None else None
    for name in [*os.environ]:
        if name not in bench.aiflow.environ:
            patch.delenv(name)
    for name, value in bench.aiflow.environ.items():
        patch.setenv(name, value)
    before = current_texts()
    yield made
    use_texts(before)


class Terminal:
    """The program, called in the test's own process, where nobody waits between two writes."""

    def __init__(self, place: IssuePlace, capfd: pytest.CaptureFixture[str]) -> None:
        self.root, self.capfd = str(place.bench.root), capfd

    def __call__(self, *argv: str, code: int = 0, language: str = "en") -> str:
        """Call a command and return what it prints."""
        use_texts(Texts(language))
        self.capfd.readouterr()
        assert run_program(["-C", self.root, *argv]) == code, self.capfd.readouterr()
        out, err = self.capfd.readouterr()
        return out or err

    def json(self, *argv: str, code: int = 0) -> Any:
        """Call a command with `--json`."""
        return json.loads(self(*argv, "--json", code=code))
