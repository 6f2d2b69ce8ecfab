"""What GitHub refuses, in our reason codes (ERR-1); its own words are facts, and a token is in none of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from aiflow.errors import AiflowError, EnvironmentProblemError, NotFoundError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.adapters.github_issues.transport import Answer, Ask

MOVED = (301, 302, 303, 307, 308)
_MISSING = (404, 410, *MOVED)
_LONGEST = 300


class RepoAddress(NamedTuple):
    """Which repository at which API."""

    endpoint: str
    repo: str

    def problem(self, code: str, ask: Ask, **facts: object) -> AiflowError:
        """Name what went wrong with a call."""
        kind = NotFoundError if code == "GITHUB_GONE" else EnvironmentProblemError
        return kind(reason_code=code, endpoint=self.endpoint, repo=self.repo, call=str(ask), **facts)

    def limited(self, ask: Ask, until: datetime) -> AiflowError:
        """Say that GitHub takes no call until a moment."""
        return self.problem("GITHUB_RATE_LIMITED", ask, until=until.isoformat(timespec="seconds"))

    def failed(self, ask: Ask, problem: str, *, may_have_happened: bool) -> AiflowError:
        """Say that no answer came, and whether the call may have happened anyway."""
        code = "GITHUB_UNKNOWN" if ask.is_write and may_have_happened else "GITHUB_UNREACHABLE"
        return self.problem(code, ask, problem=problem)

    def refused(self, ask: Ask, answer: Answer) -> AiflowError:
        """Say why GitHub did not do what was asked; a limit is no such reason."""
        if answer.status >= 500:
            problem = words("github_problem.status", status=str(answer.status))
            return self.failed(ask, problem, may_have_happened=True)
        if answer.status in _MISSING:
            return self.problem("GITHUB_GONE", ask, status=answer.status)
        code = {401: "GITHUB_TOKEN_INVALID", 403: "GITHUB_RIGHTS"}.get(answer.status, "GITHUB_REFUSED")
        return self.problem(code, ask, status=answer.status, problem=said_by(answer))


def said_by(answer: Answer) -> str:
    """Return GitHub's own words for a refusal, on one line, with what it says about single fields."""
    document = _document(answer)
    errors = document.get("errors")
    details = [each if isinstance(each, str) else _field(each) for each in errors] if isinstance(errors, list) else []
    said = ": ".join(filter(None, (str(document.get("message", "")), ", ".join(filter(None, details)))))
    return " ".join(said.split())[:_LONGEST] or f"HTTP {answer.status}"


def _field(error: object) -> str:
    if not isinstance(error, dict):
        return ""
    return str(error.get("message") or " ".join(str(error.get(name, "")) for name in ("field", "code")).strip())


def _document(answer: Answer) -> dict[str, object]:
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
