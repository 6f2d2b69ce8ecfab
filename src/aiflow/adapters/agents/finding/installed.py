"""The agent programs of this machine (AGT-1, DOC-1): where they are, which version, whether they are logged in.

Looking starts nothing and takes a few milliseconds. Asking starts the programs themselves, all at once, for a few
seconds at most, and believes what they report.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiflow.adapters.agents.acp.programs import known as known_acp
from aiflow.adapters.agents.claude.environment import env_names as claude_names
from aiflow.adapters.agents.codex.arguments import ENV_NAMES as CODEX_NAMES
from aiflow.adapters.agents.finding.asking import Said, ask
from aiflow.adapters.agents.finding.logins import CODEX_KEEPS, LoginSeen, seen_login
from aiflow.adapters.extras import extra_install, has_extra
from aiflow.adapters.processes.environment import minimal
from aiflow.domain.agents.programs import KNOWN, AgentChoice, AgentProgram, AgentTrouble, Login

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

ASK_SECONDS = 15.0
MOST_AT_ONCE = 8
_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")
_NAMES = {known.kind: known.name for known in KNOWN if not known.argv}
# Which of the user's variables each kind's driver gives its program; others have to be named in `agent.env`.
_DRIVER_NAMES: Mapping[str, Callable[[AgentProgram, Mapping[str, str]], tuple[str, ...]]] = {
    "claude-code": lambda _, environ: claude_names(environ),
    "codex": lambda *_: CODEX_NAMES,
    "acp": lambda found, _: known_acp(found.argv).env_names,
}
# Before this version `auth status` is no command of claude's, but words for a model.
_CLAUDE_KNOWS_AUTH = (2, 1)


@dataclass(frozen=True, slots=True)
class InstalledAgents:
    """Looks for agent programs as a run of this project would find them."""

    environ: Mapping[str, str]
    root: str
    env_names: tuple[str, ...] = ()
    ask_seconds: float = ASK_SECONDS

    def survey(self) -> tuple[AgentProgram, ...]:
        """Look for every program we know; a program of the user's own and the one that is built in are agents too."""
        known = (AgentChoice(each.kind, each.argv) for each in KNOWN)
        choices = (*known, AgentChoice("command"), AgentChoice("demo"))
        return tuple(self.find(choice) for choice in choices)

    def ask(self, programs: Iterable[AgentProgram]) -> tuple[AgentProgram, ...]:
        """Ask programs for their version and whether they are logged in, all at once."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=MOST_AT_ONCE) as pool:
            return tuple(pool.map(self._ask, programs))

    def find(self, choice: AgentChoice, *, asks: bool = False) -> AgentProgram:
        """Look for the program of a choice; `asks` asks it for its version and whether it is logged in."""
        found = self._look(choice)
        return self._ask(found) if asks else found

    def _look(self, choice: AgentChoice) -> AgentProgram:
        kind, argv = choice
        if kind == "demo":
            return AgentProgram(kind, "", login=Login.NOT_NEEDED)
        # `argv` is the program of these two only: the setting may be there for another role's kind.
        argv = argv if kind in ("acp", "command") else ()
        name = argv[0] if argv else _NAMES.get(kind, "")
        path, trouble = self._locate(name)
        if kind == "acp" and trouble is None and not has_extra("acp"):
            trouble = AgentTrouble.NO_EXTRA
        extra = extra_install("acp") if trouble is AgentTrouble.NO_EXTRA else ""
        found = AgentProgram(kind, name, argv, path, trouble=trouble, extra_install=extra)
        if kind == "command":
            return replace(found, login=Login.NOT_NEEDED)
        if path is None:
            return found
        seen = seen_login(name.rpartition("/")[2], self._environ(found), self.root)
        return replace(found, login=seen.login, login_by=seen.by)

    def _locate(self, name: str) -> tuple[str | None, AgentTrouble | None]:
        """Return where a program is, or why it cannot be started; a relative path is one of the project."""
        if not name:
            return None, AgentTrouble.NO_ARGV
        if "/" not in name:
            path = shutil.which(name, path=self.environ.get("PATH", os.defpath))
            return path, None if path else AgentTrouble.NOT_ON_PATH
        path = os.path.normpath(os.path.join(self.root, name))
        if not os.path.isfile(path):
            return None, AgentTrouble.MISSING
        return path, None if os.access(path, os.X_OK) else AgentTrouble.NOT_EXECUTABLE

    def _environ(self, found: AgentProgram) -> dict[str, str]:
        """Return what a run would give a program of the user's environment, and nothing else."""
        return minimal(self.environ, (*_DRIVER_NAMES[found.kind](found, self.environ), *self.env_names))

    def _ask(self, found: AgentProgram) -> AgentProgram:
        """Ask a known program about itself; the user's own program is not started for this."""
        if found.path is None or found.known is None:
            return found
        said = self._say(found, "--version")
        if said.code != 0:
            return replace(found, trouble=found.trouble or AgentTrouble.BROKEN)
        version = _VERSION.search(said.output)
        asked = replace(found, version=version[0] if version else None)
        seen = {"claude": self._ask_claude, "codex": self._ask_codex}.get(found.known.name, _as_seen)(asked)
        is_out = seen.login is Login.OUT and asked.trouble is None
        trouble = AgentTrouble.LOGGED_OUT if is_out else asked.trouble
        return replace(asked, login=seen.login, login_by=seen.by, trouble=trouble)

    def _ask_claude(self, found: AgentProgram) -> LoginSeen:
        numbers = tuple(int(number) for number in re.findall(r"\d+", found.version or "")[:2])
        if numbers < _CLAUDE_KNOWS_AUTH:
            return _as_seen(found)
        import json

        try:
            status = json.loads(self._say(found, "auth", "status").output)
            is_in = status["loggedIn"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return _as_seen(found)
        by = status.get("subscriptionType") or status.get("apiKeySource") or status.get("authMethod")
        return LoginSeen(Login.IN, str(by or "")) if is_in is True else LoginSeen(Login.OUT)

    def _ask_codex(self, found: AgentProgram) -> LoginSeen:
        """Ask codex, which knows nothing of variables and of providers of the user's own; its words hold key parts."""
        if found.login_by not in ("", *CODEX_KEEPS):
            return _as_seen(found)
        said = self._say(found, "login", "status")
        if said.code == 0:
            return LoginSeen(Login.IN, found.login_by)
        return LoginSeen(Login.OUT) if "Not logged in" in said.output + said.errors else _as_seen(found)

    def _say(self, found: AgentProgram, *arguments: str) -> Said:
        """Ask a program something."""
        assert found.path is not None
        return ask((found.path, *arguments), self.root, self._environ(found), self.ask_seconds)


def _as_seen(found: AgentProgram) -> LoginSeen:
    return LoginSeen(found.login, found.login_by)
