"""Whether the known agents are logged in, from what lies in files and variables: nothing is started, nothing is asked.

Only whether there is a key or a login is looked at. Neither is kept, shown or checked.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from aiflow.adapters.agents.call.own_folders import claude_home, codex_home, home_of
from aiflow.adapters.agents.claude.environment import CLOUDS
from aiflow.domain.agents.programs import Login

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_MOST_BYTES = 20_000_000
_CLAUDE_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
# How codex itself keeps a login; it reports no other way of being logged in.
CODEX_KEEPS = ("ChatGPT", "auth.json")
_GEMINI_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS")
_MANAGED_CLAUDE = "/etc/claude-code/managed-settings.json"


class LoginSeen(NamedTuple):
    """What was seen of a login: how sure it is, and the variable or file that it is in."""

    login: Login
    by: str = ""


def seen_login(name: str, environ: Mapping[str, str], root: str) -> LoginSeen:
    """Look for the login of a known program."""
    look = _LOOKS.get(name)
    return look(environ, root) if look else LoginSeen(Login.UNKNOWN)


def _claude(environ: Mapping[str, str], root: str) -> LoginSeen:
    folder = claude_home(environ)
    found = _variable(environ, (*_CLAUDE_KEYS, *CLOUDS))
    # The project's `settings.local.json` is not in git, and so not in a run's worktree.
    for path in (f"{folder}/settings.json", f"{root}/.claude/settings.json", _MANAGED_CLAUDE):
        found = found or _claude_settings(path)
    if found:
        return LoginSeen(Login.IN, found)
    if _table(f"{folder}/.credentials.json").get("claudeAiOauth"):
        return LoginSeen(Login.IN, "claude.ai")
    beside = folder if environ.get("CLAUDE_CONFIG_DIR") else home_of(environ)
    if _table(f"{beside}/.claude.json").get("primaryApiKey"):
        return LoginSeen(Login.IN, "/login")
    # A Mac keeps the login in its keychain, where we do not look.
    return LoginSeen(Login.UNKNOWN if sys.platform == "darwin" else Login.NONE_SEEN)


def _claude_settings(path: str) -> str:
    settings = _table(path)
    variables = settings.get("env")
    named = _variable(variables, (*_CLAUDE_KEYS, *CLOUDS)) if isinstance(variables, dict) else ""
    return named or ("apiKeyHelper" if settings.get("apiKeyHelper") else "")


def _codex(environ: Mapping[str, str], _root: str) -> LoginSeen:
    folder = codex_home(environ)
    settings = _toml(f"{folder}/config.toml")
    own = _codex_provider(settings, environ)
    if own is not None:
        return own
    # OPENAI_API_KEY alone does nothing: codex takes it only at `codex login --with-api-key`.
    if environ.get("CODEX_API_KEY"):
        return LoginSeen(Login.IN, "CODEX_API_KEY")
    kept = _table(f"{folder}/auth.json")
    if kept.get("tokens"):
        return LoginSeen(Login.IN, "ChatGPT")
    if kept.get("OPENAI_API_KEY"):
        return LoginSeen(Login.IN, "auth.json")
    is_elsewhere = settings.get("cli_auth_credentials_store") in ("keyring", "auto")
    return LoginSeen(Login.UNKNOWN if is_elsewhere else Login.NONE_SEEN)


def _codex_provider(settings: Mapping[str, Any], environ: Mapping[str, str]) -> LoginSeen | None:
    """Look at a model provider of the user's own; None is OpenAI, which needs a login."""
    name = settings.get("model_provider")
    providers = settings.get("model_providers")
    provider = providers.get(name) if isinstance(providers, dict) else None
    if not isinstance(provider, dict) or provider.get("requires_openai_auth"):
        return None
    variable = provider.get("env_key")
    if not isinstance(variable, str):
        return LoginSeen(Login.NOT_NEEDED, str(name))
    return LoginSeen(Login.IN if environ.get(variable) else Login.NONE_SEEN, variable)


def _opencode(environ: Mapping[str, str], _root: str) -> LoginSeen:
    data = environ.get("XDG_DATA_HOME") or f"{home_of(environ)}/.local/share"
    # Any of its many providers may have its key elsewhere.
    return LoginSeen(Login.IN, "auth.json") if _table(f"{data}/opencode/auth.json") else LoginSeen(Login.UNKNOWN)


def _gemini(environ: Mapping[str, str], _root: str) -> LoginSeen:
    found = _variable(environ, _GEMINI_KEYS)
    if not found and _table(f"{home_of(environ)}/.gemini/oauth_creds.json"):
        found = "Google"
    return LoginSeen(Login.IN, found) if found else LoginSeen(Login.UNKNOWN)


_LOOKS: Mapping[str, Callable[[Mapping[str, str], str], LoginSeen]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "gemini": _gemini,
}


def _variable(variables: Mapping[str, object], names: Iterable[str]) -> str:
    """Return the first of these variables that says something."""
    return next((name for name in names if variables.get(name) not in (None, "", "0", "false")), "")


def _table(path: str) -> dict[str, Any]:
    """Read a JSON object; whatever else is there, or nothing, counts as empty."""
    try:
        value = json.loads(_read(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _toml(path: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(_read(path).decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def _read(path: str) -> bytes:
    from aiflow.adapters.files.atomic_files import read_regular

    return read_regular(path, _MOST_BYTES)
