"""From settings to a client (ISS-1): which repository, which API, who we are. The token is kept nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiflow.adapters.github_issues.auth import AppCredentials, TokenCredentials
from aiflow.adapters.github_issues.client import GitHubClient
from aiflow.adapters.github_issues.line import CallLine
from aiflow.adapters.github_issues.shared_pace import SharedPace, pace_file
from aiflow.adapters.github_issues.transport import HttpTransport
from aiflow.adapters.github_issues.troubles import RepoAddress
from aiflow.errors import EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.adapters.github_issues.auth import Credentials
    from aiflow.adapters.github_issues.transport import Transport
    from aiflow.messages.details import Words
    from aiflow.ports.time import Time
    from aiflow.settings import Settings

API_URL = "https://api.github.com"
_KINDS = {"github_pat_": "fine_grained", "ghp_": "classic", "ghs_": "installation"}


def connect(
    root: Path, settings: Settings, environ: Mapping[str, str], time: Time, transport: Transport | None = None
) -> GitHubClient:
    """Return a client for the settings' repository; nothing is sent yet."""
    place = RepoAddress(settings.text("github.api_url").rstrip("/") or API_URL, settings.text("github.repo"))
    line = CallLine(transport or HttpTransport(place.endpoint), time, place)
    return GitHubClient(line, _credentials(line, root, settings, environ))


def shared_pace(settings: Settings, environ: Mapping[str, str], time: Time, *, is_to_write: bool) -> SharedPace:
    """Return the pace that all processes of this user keep with the settings' account; nothing is written yet."""
    account = settings.text("github.app_id") or environ.get(settings.text("github.token_env"), "").strip()
    path = pace_file(environ, settings.text("github.api_url").rstrip("/") or API_URL, account)
    return SharedPace(path, time, is_to_write=is_to_write)


def token_kind(settings: Settings, environ: Mapping[str, str]) -> str:
    """Name what kind of token the settings lead to, by how it begins."""
    if settings.text("github.app_id"):
        return "app"
    token = environ.get(settings.text("github.token_env"), "").strip()
    return next((kind for begin, kind in _KINDS.items() if token.startswith(begin)), "token")


def _credentials(line: CallLine, root: Path, settings: Settings, environ: Mapping[str, str]) -> Credentials:
    app_id, key_path = settings.text("github.app_id"), settings.text("github.app_key_path")
    variable = settings.text("github.token_env")
    if app_id and key_path:
        return AppCredentials(line, app_id, root / Path(key_path).expanduser())
    if app_id or key_path:
        raise _not_signed_in(line.place, variable, words("github_problem.half_an_app"))
    token = environ.get(variable, "").strip()
    if not token:
        raise _not_signed_in(line.place, variable, words("github_problem.no_token", variable=variable))
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise _not_signed_in(line.place, variable, words("github_problem.bad_token", variable=variable))
    return TokenCredentials(token)


def _not_signed_in(place: RepoAddress, variable: str, problem: Words) -> EnvironmentProblemError:
    parts = urlsplit(place.endpoint)
    site = "https://github.com" if place.endpoint == API_URL else f"{parts.scheme}://{parts.netloc}"
    return EnvironmentProblemError(
        reason_code="GITHUB_NOT_SIGNED_IN",
        endpoint=place.endpoint,
        repo=place.repo,
        problem=problem,
        variable=variable,
        page=f"{site}/settings/personal-access-tokens",
    )
