"""The variables that hold GitHub's secrets (ISS-11): no agent, test or set-up command gets them."""

from __future__ import annotations

from posixpath import normpath
from typing import TYPE_CHECKING

from aiflow.settings.checking import Mistake, MistakeKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.settings import Settings

_SECRETS = ("github.token_env", "github.webhook_secret_env")
# What these name is handed to agents, and to commands that run what agents wrote.
_HANDED_ON = ("agent.env", "tests.env")


def github_secrets(settings: Settings) -> tuple[str, ...]:
    """Return the variables with GitHub's secrets; none without a repository, for then they are nothing to us."""
    names = (settings.text(name) for name in _SECRETS) if settings.text("github.repo") else ()
    return tuple(filter(None, names))


def handed_secrets(settings: Settings) -> Iterator[Mistake]:
    """Find the settings that would hand such a variable to an agent."""
    secrets = github_secrets(settings)
    for name in _HANDED_ON if secrets else ():
        for variable in sorted({*settings.texts(name)} & {*secrets}):
            yield Mistake(name, MistakeKind.NOT_FOR_AGENTS, (("value", variable),))
    key = settings.text("github.app_key_path") if secrets else ""
    if key and any(normpath(key) == normpath(path) for path in settings.texts("worktree.copy")):
        yield Mistake("worktree.copy", MistakeKind.NOT_FOR_AGENTS, (("value", key),))
