"""The coding agents aiflow knows (AGT-1): which program each is, how one gets it and logs in, what was found of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.agents.answers import Role


class Login(StrEnum):
    """Whether a program is logged in to its model."""

    IN = "in"
    OUT = "out"  # it says so itself
    NONE_SEEN = "none_seen"  # no key and no login in the places we know
    UNKNOWN = "unknown"
    NOT_NEEDED = "not_needed"


class AgentTrouble(StrEnum):
    """Why an agent cannot be used; the words are in `messages/` under `check.agent.<trouble>`."""

    NO_ARGV = "no_argv"
    NOT_ON_PATH = "not_on_path"
    MISSING = "missing"
    NOT_EXECUTABLE = "not_executable"
    NO_EXTRA = "no_extra"
    BROKEN = "broken"  # it is there, but cannot even report its version
    LOGGED_OUT = "logged_out"

    @property
    def reason_code(self) -> str:
        """The reason that a run is refused with."""
        return "AGENT_AUTH_REQUIRED" if self is AgentTrouble.LOGGED_OUT else "AGENT_NOT_FOUND"


class KnownProgram(NamedTuple):
    """A program that is the agent of a kind: how ACP programs are started, and what gets and logs in each.

    `key_variable` is the variable that does instead of a login, where there is a single one.
    """

    kind: str
    name: str
    argv: tuple[str, ...]
    install: str
    log_in: str
    key_variable: str = ""


# In the order in which `init` prefers them.
KNOWN = (
    KnownProgram(
        "claude-code",
        "claude",
        (),
        "npm install -g @anthropic-ai/claude-code",
        "claude auth login",
        "ANTHROPIC_API_KEY",
    ),
    KnownProgram("codex", "codex", (), "npm install -g @openai/codex", "codex login", "CODEX_API_KEY"),
    KnownProgram("acp", "opencode", ("opencode", "acp"), "npm install -g opencode-ai", "opencode auth login"),
    KnownProgram("acp", "gemini", ("gemini", "--acp"), "npm install -g @google/gemini-cli", "gemini", "GEMINI_API_KEY"),
)
KINDS = ("claude-code", "codex", "acp", "command", "demo")
# What a person may call an agent: its kind, or its program.
NAMES = tuple(dict.fromkeys((*KINDS, *(known.name for known in KNOWN))))


class AgentChoice(NamedTuple):
    """The settings of a role's agent."""

    kind: str
    argv: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """What is known of one agent: where its program is, which version, whether it is logged in, who uses it.

    `program` is the name or path it is started by; `login_by` says by what it is logged in, never a key itself;
    `extra_install` is the command that adds the part of aiflow which the kind `acp` needs, where that is missing.
    """

    kind: str
    program: str
    argv: tuple[str, ...] = ()
    path: str | None = None
    version: str | None = None
    login: Login = Login.UNKNOWN
    login_by: str = ""
    trouble: AgentTrouble | None = None
    roles: tuple[Role, ...] = ()
    extra_install: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether its program is there."""
        return self.trouble in (None, AgentTrouble.LOGGED_OUT, AgentTrouble.NO_EXTRA)

    @property
    def known(self) -> KnownProgram | None:
        """The program that it is, if we know it."""
        name = self.program.rpartition("/")[2]
        return next((known for known in KNOWN if (known.kind, known.name) == (self.kind, name)), None)

    @property
    def missing_variable(self) -> str:
        """The variable that its model provider needs and a run would not have, where no login helps; else empty."""
        return self.login_by if self.trouble is None and self.login is Login.NONE_SEEN else ""

    @property
    def mending(self) -> str | None:
        """The command that makes it usable, if there is one."""
        if self.trouble is AgentTrouble.NO_EXTRA:
            return self.extra_install
        if self.known is None or self.missing_variable:
            return None
        if self.trouble is AgentTrouble.BROKEN:
            return self.known.install
        if self.trouble is AgentTrouble.LOGGED_OUT or self.login is Login.NONE_SEEN:
            return self.known.log_in
        return self.known.install if self.trouble is not None else None


def advice_facts(program: AgentProgram, reason_code: str) -> tuple[tuple[str, str], ...]:
    """Return what a reason's words need to name the commands of this program only; empty if we do not know it."""
    known = program.known
    if reason_code == "AGENT_AUTH_REQUIRED" and program.missing_variable:
        return (("variable", program.missing_variable),)
    if reason_code == "AGENT_AUTH_REQUIRED" and known is not None:
        key = (("key_variable", known.key_variable),) if known.key_variable else ()
        return (("log_in", known.log_in), *key)
    if reason_code == "AGENT_NOT_FOUND" and program.mending is not None:
        return (("install", program.mending),)
    return ()


def code_of_call(program: AgentProgram, reason_code: str | None) -> str | None:
    """Return why a call failed: one that says itself that it is logged out fails for that, whatever came of it."""
    is_out = reason_code == "AGENT_FAILED" and program.trouble is AgentTrouble.LOGGED_OUT
    return AgentTrouble.LOGGED_OUT.reason_code if is_out else reason_code


def choose(found: Iterable[AgentProgram]) -> AgentProgram | None:
    """Choose the agent of a new project: the first that is installed, one that seems logged out only if no other is."""
    installed = [program for program in found if program.is_installed and program.known is not None]
    ready = [program for program in installed if program.login not in (Login.OUT, Login.NONE_SEEN)]
    return next(iter((*ready, *installed)), None)


def with_roles(found: Iterable[AgentProgram], used: Iterable[tuple[Role, AgentProgram]]) -> tuple[AgentProgram, ...]:
    """Put what roles use among what was found: each program once, with its roles, in the order of the kinds."""
    rows = {(program.kind, program.program): program for program in found}
    for role, program in used:
        row = rows.get((program.kind, program.program), program)
        rows[program.kind, program.program] = replace(row, argv=program.argv or row.argv, roles=(*row.roles, role))
        if program.program:
            rows.pop((program.kind, ""), None)  # that any program may be set says nothing where one is
    return tuple(sorted(rows.values(), key=lambda row: KINDS.index(row.kind)))


class Sandbox(StrEnum):
    """What `agent.sandbox` says."""

    AUTO = "auto"
    REQUIRED = "required"
    OFF = "off"


# Codex brings a sandbox that needs to mount, which a confined process may not do.
BRING_THEIR_OWN = frozenset({"codex"})
# A program of the user's own may have to write anywhere: it is confined only where that is asked for.
LEFT_ALONE = frozenset({"command", "demo"})


def is_confined(kind: str, sandbox: str) -> bool:
    """Return whether agents of a kind are to be confined by the kernel."""
    if kind in BRING_THEIR_OWN or sandbox == Sandbox.OFF:
        return False
    return sandbox == Sandbox.REQUIRED or kind not in LEFT_ALONE
