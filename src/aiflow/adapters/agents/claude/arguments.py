"""How `claude` is called (AGT-1, AGT-4): each call states what it may do, whatever its settings say.

Pure. A resumed session gets its permissions again like the first one; nothing depends on what it got before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.means import may_command
from aiflow.domain.agents.answer_schema import SCHEMAS
from aiflow.domain.agents.answers import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

# What is there for a role; everything else (subagents, web, background work, …) is not, however it is allowed.
READING = ("Read", "Glob", "Grep")
WRITING = ("Edit", "Write", "NotebookEdit")
COMMANDS = ("Bash",)
MCP_PREFIX = "mcp__"
LEAST_USD = 0.0001


@dataclass(frozen=True, slots=True)
class ClaudeTerms:
    """What a call of claude is allowed.

    `tools` is what the settings add, `writable` where its file tools may write, `variables` what its environment has
    whatever claude's settings say. With `is_confined` the kernel keeps its commands in, with `is_project_trusted` the
    project's own settings and instructions count.
    """

    role: Role
    model: str = ""
    session_id: str | None = None
    max_turns: int = 0
    cost_usd: float | None = None
    tools: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    is_confined: bool = True
    is_project_trusted: bool = True


def arguments(terms: ClaudeTerms) -> tuple[str, ...]:
    """Return everything after the program's name; the prompt comes on standard input."""
    return (
        *("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"),
        *("--json-schema", json.dumps(SCHEMAS[terms.role])),
        *(("--model", terms.model) if terms.model else ()),
        *(("--resume", terms.session_id) if terms.session_id else ()),
        *(("--max-turns", str(terms.max_turns)) if terms.max_turns else ()),
        *(("--max-budget-usd", _dollars(terms.cost_usd)) if terms.cost_usd is not None else ()),
        *("--permission-mode", "dontAsk"),
        *("--tools", ",".join(tools_of(terms))),
        *("--allowedTools", *rules_of(terms)),
        *("--setting-sources", "user,project,local" if terms.is_project_trusted else "user"),
        *("--settings", json.dumps(_settings(terms))),
        *(() if _has_servers(terms) else ("--strict-mcp-config",)),
    )


def tools_of(terms: ClaudeTerms) -> tuple[str, ...]:
    """Name the tools that are there for a role at all; those of MCP servers are there with their servers."""
    added = (rule.partition("(")[0] for rule in terms.tools if not rule.startswith(MCP_PREFIX))
    return tuple(dict.fromkeys((*_own_tools(terms), *added)))


def _own_tools(terms: ClaudeTerms) -> tuple[str, ...]:
    """Name a role's tools; a reviewer runs commands only where the kernel keeps them from writing."""
    writing = WRITING if terms.role is Role.IMPLEMENTER else ()
    return (*READING, *writing, *(COMMANDS if may_command(terms.role, is_confined=terms.is_confined) else ()))


def rules_of(terms: ClaudeTerms) -> tuple[str, ...]:
    """Return which uses of the tools need no permission; whatever is not named is denied."""
    own = tuple(tool for tool in _own_tools(terms) if tool not in WRITING)
    # One rule for every tool that changes files, by the path of what it changes.
    edits = ("Edit(./**)", *(f"Edit(/{path}/**)" for path in terms.writable)) if terms.role is Role.IMPLEMENTER else ()
    return tuple(dict.fromkeys((*own, *edits, *terms.tools)))


def _settings(terms: ClaudeTerms) -> Mapping[str, object]:
    """Give settings that go before the user's and the project's; hooks ask, block and write, and no person is there."""
    # Claude's own sandbox mounts, which a confined process may not do; elsewhere the user's choice applies.
    sandbox = {"sandbox": {"enabled": False}} if terms.is_confined else {}
    return {"disableAllHooks": True, **sandbox, "env": dict(terms.variables)}


def _has_servers(terms: ClaudeTerms) -> bool:
    return any(rule.startswith(MCP_PREFIX) for rule in terms.tools)


def _dollars(cost_usd: float) -> str:
    """Write an amount as claude takes it: more than nothing, and no exponent."""
    return f"{max(cost_usd, LEAST_USD):.4f}"
