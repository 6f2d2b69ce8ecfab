"""How `codex exec` is called (AGT-1, AGT-4): each call states what it may do, whatever its config.toml says.

Pure. A resumed thread has forgotten its sandbox, so nothing depends on what it got before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.domain.agents.answers import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.adapters.agents.codex.session import CodexThread

# What codex itself is given; the commands that it runs see none of them.
ENV_NAMES = (
    "CODEX_HOME",
    "CODEX_SQLITE_HOME",
    "CODEX_API_KEY",
    "CODEX_ACCESS_TOKEN",
    "CODEX_CA_CERTIFICATE",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_ORGANIZATION",
    "OPENAI_PROJECT",
)
# Off in an unattended run: the user's own programs that would run outside the sandbox, agents whose tokens are not
# counted, tools for a screen, and trying for ever to reach a model that is not there.
FEATURES_OFF = (
    "apps",
    "browser_use",
    "computer_use",
    "goals",
    "hooks",
    "image_generation",
    "memories",
    "multi_agent",
    "plugins",
    "shell_snapshot",
    "skill_mcp_dependency_install",
    "tool_suggest",
    "unbounded_connection_retries",
)
NETWORK = "network"
WEB_SEARCH = "web_search"
MCP_PREFIX = "mcp__"

_Value = str | bool | tuple[str, ...] | dict[str, "_Value"]


@dataclass(frozen=True, slots=True)
class CodexTerms:
    """What a call of codex is allowed.

    `tools` is what the settings add, `servers` names the user's MCP servers, `hidden` the variables that are codex's
    alone.
    """

    role: Role
    cwd: str
    model: str = ""
    is_sandboxed: bool = True
    writable: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


def arguments(terms: CodexTerms, schema_path: str, session: CodexThread | None) -> tuple[str, ...]:
    """Return everything after the program's name; the prompt comes on standard input."""
    head = ("exec", "resume") if session else ("exec",)
    model = ("-m", terms.model) if terms.model else ()
    config = [part for key, value in _config(terms).items() for part in ("-c", f"{key}={_toml(value)}")]
    thread = (session.thread_id,) if session else ()
    flags = ("--json", "--skip-git-repo-check", "--ignore-rules")
    return (*head, *flags, *model, *config, "--output-schema", schema_path, *thread, "-")


def sandbox_mode(terms: CodexTerms) -> str:
    """Return what commands may write: the worktree, or nothing; everything only where the settings say so."""
    if not terms.is_sandboxed:
        return "danger-full-access"
    return "workspace-write" if terms.role is Role.IMPLEMENTER else "read-only"


def _config(terms: CodexTerms) -> dict[str, _Value]:
    return {
        "sandbox_mode": sandbox_mode(terms),
        "approval_policy": "never",
        "sandbox_workspace_write": {
            "writable_roots": terms.writable,
            "network_access": NETWORK in terms.tools,
            "exclude_slash_tmp": True,
            "exclude_tmpdir_env_var": False,
        },
        "shell_environment_policy": {
            "inherit": "all",
            "ignore_default_excludes": False,
            "exclude": (*ENV_NAMES, *terms.hidden),
            "include_only": (),
        },
        # A login shell would put the user's profile, and a secret it exports, between aiflow's PATH and the command.
        "allow_login_shell": False,
        "notify": (),
        "web_search": "live" if WEB_SEARCH in terms.tools else "disabled",
        **{f"features.{name}": False for name in FEATURES_OFF},
        # In a repository that the user trusts, codex would start what a `.codex/config.toml` of the branch names.
        "projects": {terms.cwd: {"trust_level": "untrusted"}},
        **dict(_servers(terms)),
    }


def _servers(terms: CodexTerms) -> Iterator[tuple[str, _Value]]:
    """Switch the user's MCP servers off but those that the settings name: they run outside the sandbox."""
    states: dict[str, _Value] = {
        name: {"enabled": True, "default_tools_approval_mode": "approve"}
        if f"{MCP_PREFIX}{name}" in terms.tools
        else {"enabled": False}
        for name in terms.servers
    }
    if states:
        yield "mcp_servers", states


def _toml(value: _Value) -> str:
    """Write a value as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return f"[{','.join(map(_toml, value))}]"
    return "{" + ",".join(f"{_toml(key)}={_toml(inner)}" for key, inner in value.items()) + "}"
