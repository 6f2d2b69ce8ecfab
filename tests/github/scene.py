"""A hub with people in it, and clients that reach it one way or the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aiflow.adapters.github_issues.client import GitHubClient
from aiflow.adapters.github_issues.connect import connect
from aiflow.adapters.github_issues.transport import Answer, Ask, HttpTransport, Transport
from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.toml_settings import load_settings
from aiflow.ports.time import Time
from github.answering import GitHub
from github.hub import Hub

PEOPLE = {"owner": "admin", "maya": "write", "mel": "maintain", "theo": "triage", "rita": "read", "nobody": "none"}
RUNNER = "aiflow-runner"


class Switch:
    """Stands before whichever API a test has now: a server and a proxy are started once for many tests."""

    def __init__(self) -> None:
        self.api: Transport | None = None

    def send(self, ask: Ask, headers: Mapping[str, str]) -> Answer:
        assert self.api is not None, "no test is on"
        return self.api.send(ask, headers)

    def close(self) -> None:
        """Keep nothing."""


class Told(HttpTransport):
    """HTTP that says what Prism found against a call or its answer, and notes it: a run ends well whatever is raised."""

    def __init__(self, url: str, violations: list[str]) -> None:
        super().__init__(url)
        self._violations = violations

    def send(self, ask: Ask, headers: Mapping[str, str]) -> Answer:
        answer = super().send(ask, headers)
        if "problem+json" in answer.headers.get("content-type", ""):
            self._violations.append(f"{ask}: {answer.body.decode()}")
            raise AssertionError(self._violations[-1])
        return answer


@dataclass
class Scene:
    """A repository with an owner, writers and others; `url` is where it is served, if it is."""

    time: Time = field(default_factory=PlayedTime)
    url: str = ""
    clients: list[GitHubClient] = field(default_factory=list)
    make_hub: Callable[..., Hub] = Hub
    violations: list[str] = field(default_factory=list)
    hub: Hub = field(init=False)
    api: GitHub = field(init=False)

    def __post_init__(self) -> None:
        self.hub = self.make_hub(clock=self.time.now)
        self.api = GitHub(self.hub)
        for login, permission in PEOPLE.items():
            self.hub.person(login, permission)
        self.hub.person(RUNNER, "write")

    def transport(self) -> Transport:
        """Return the way to the hub."""
        return Told(self.url, self.violations) if self.url else self.api

    def client(self, login: str = RUNNER, time: Time | None = None) -> GitHubClient:
        """Return a client of one of the people."""
        token = next(token for token, owner in self.hub.tokens.items() if owner == login)
        flags = (f"github.repo={self.hub.repo}", f"github.api_url={self.url}")
        settings = load_settings(Path("/nowhere"), {}, flags)
        self.clients.append(
            connect(Path("/nowhere"), settings, {"GITHUB_TOKEN": token}, time or self.time, self.transport())
        )
        return self.clients[-1]
