"""The environment that agents, tests and set-up commands get (AGT-4): an allow-list, never all of the user's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ALLOWED_NAMES = """
PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP
XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy
SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS CURL_CA_BUNDLE
GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM
JAVA_HOME NVM_DIR PYENV_ROOT RBENV_ROOT GOPATH GOROOT CARGO_HOME RUSTUP_HOME
"""
ALLOWED = frozenset(_ALLOWED_NAMES.split())
# There is no terminal, nothing may wait for one, and output should come as it is written.
ALWAYS = {"TERM": "dumb", "CI": "1", "GIT_TERMINAL_PROMPT": "0", "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}


def minimal(environ: Mapping[str, str], names: Iterable[str], more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Take what every program needs, the variables named in the settings, and what the call adds."""
    wanted = {*ALLOWED, *names}
    kept = {name: value for name, value in environ.items() if name in wanted or name.startswith("LC_")}
    if "PATH" in kept:  # an entry that begins at the current folder would be the worktree's
        kept["PATH"] = os.pathsep.join(filter(os.path.isabs, kept["PATH"].split(os.pathsep)))
    return {**kept, **ALWAYS, **(more or {})}
