"""A checkout whose settings name the repository of a hub: the whole program against it, over HTTP."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

from e2e.bench import Bench
from github.answering import GitHub
from github.hub import Hub
from github.scene import PEOPLE, RUNNER
from github.server import served

SECRET = "It's a Secret to Everybody"


class Place:
    """A checkout, the hub, and how the hub answers."""

    def __init__(self, bench: Bench, api: GitHub, url: str) -> None:
        self.bench, self.hub, self.api, self.url = bench, api.hub, api, url
        self.join(bench)

    def join(self, bench: Bench, settings: str = "") -> None:
        """Let a checkout name the repository, with these further settings."""
        token = next(token for token, login in self.hub.tokens.items() if login == RUNNER)
        bench.aiflow.environ |= {"GITHUB_TOKEN": token, "GITHUB_WEBHOOK_SECRET": SECRET}
        bench.configure(f'[github]\nrepo = "{self.hub.repo}"\napi_url = "{self.url}"\n{settings}\n')
        bench.commit()

    def queued(self, title: str = "Say hello") -> int:
        """Open an issue and label it."""
        number = self.hub.open_issue(title, "Please.", by="maya")
        for label in ("P0", "agent:queued"):
            self.hub.label(number, label, "maya")
        return number

    def shown(self, number: int) -> tuple[list[str], list[str]]:
        """Return the issue's labels, and the first lines of its comments."""
        row = self.hub.rows[number]
        return row.label_names(), [comment.body.splitlines()[0] for comment in row.comments]

    def is_finished(self, number: int) -> bool:
        """Tell whether the issue says that a run has finished."""
        return any(line.startswith("**aiflow finished**") for line in self.shown(number)[1])

    def headers(self, number: int) -> list[str]:
        """Return the Run Headers of an issue."""
        return [line for line in self.shown(number)[1] if line.startswith("**aiflow is working")]

    def polls(self) -> int:
        """Count the calls that list the issues."""
        return sum(ask.method == "GET" and ask.path.endswith("/issues") for ask in self.api.calls)


@contextlib.contextmanager
def a_place(bench: Bench) -> Iterator[Place]:
    """Serve a hub for a checkout."""
    hub = Hub()
    api = GitHub(hub)
    for login, permission in PEOPLE.items():
        hub.person(login, permission)
    hub.person(RUNNER, "write")
    with served(api) as url:
        api.link_url = url
        yield Place(bench, api, url)


def delivery(repo: str, number: int, **more: object) -> bytes:
    """Write what a webhook sends about an issue."""
    return json.dumps(
        {"action": "labeled", "issue": {"number": number}, "repository": {"full_name": repo}, **more}
    ).encode()


def signed(body: bytes, secret: str = SECRET) -> str:
    """Sign a delivery."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def deliver(url: str, body: bytes, signature: str, event: str = "issues") -> tuple[int, dict[str, object]]:
    """Post a delivery as GitHub does."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    headers = {"Content-Type": "application/json", "X-GitHub-Event": event, "X-Hub-Signature-256": signature}
    try:
        connection.request("POST", "/api/github/webhook", body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()
