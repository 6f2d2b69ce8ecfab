"""The one table of settings (CFG) that the parser, `--help`, `aiflow.toml` and the docs share.

What each setting means, in both languages, is in `messages/` under `setting.<name>`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from aiflow import SETTINGS_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

SettingValue = str | int | float | bool | tuple[str, ...]

FILE_NAME = SETTINGS_FILE
ENV_PREFIX = "AIFLOW_"
ROLES = ("planner", "implementer", "qa")

# The queue stores that have a name (QUE-2): this machine's own, and DynamoDB on AWS. Any other is a URL.
LOCAL_STORE = "local"
AWS_STORE = "aws"

# Whether a part of every run is wanted (RUN-18).
ALWAYS, NEVER = "always", "never"
# What the options of a call that leave something out stand for, wherever they are given (RUN-17, RUN-18).
QUICK, NO_BASELINE = "quick", "no_baseline"
STANDS_FOR: Mapping[str, Mapping[str, SettingValue]] = {
    QUICK: {"agent.plan": NEVER, "agent.review": NEVER},
    NO_BASELINE: {"tests.baseline": False},
}


class SettingKind(StrEnum):
    """What a setting's value is."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"


class Setting(NamedTuple):
    """One row: the dotted name, its default, what it may be. An empty default is worked out where it is used."""

    name: str
    default: SettingValue
    choices: tuple[str, ...] = ()
    minimum: float = 0
    maximum: float = 1_000_000_000
    env_alias: str | None = None
    form: str = ""

    @property
    def kind(self) -> SettingKind:
        """The kind of value, by the default."""
        return _KINDS[type(self.default)]

    @property
    def env_names(self) -> tuple[str, ...]:
        """The environment variables that set it, the first one found counts."""
        own = ENV_PREFIX + self.name.replace(".", "_").upper()
        return (self.env_alias, own) if self.env_alias else (own,)


_KINDS = {
    str: SettingKind.TEXT,
    bool: SettingKind.BOOLEAN,
    int: SettingKind.INTEGER,
    float: SettingKind.NUMBER,
    tuple: SettingKind.LIST,
}

_AGENT = (
    Setting("agent.kind", "claude-code", ("claude-code", "codex", "acp", "command", "demo")),
    Setting("agent.argv", ()),
    Setting("agent.model", ""),
    Setting("agent.mode", ""),
    Setting("agent.permissions", "auto", ("auto", "ask", "deny")),
    Setting("agent.timeout_seconds", 1800, minimum=1),
    Setting("agent.idle_seconds", 600, minimum=1),
    Setting("agent.linger_seconds", 30, minimum=0),
    Setting("agent.env", ()),
    Setting("agent.sandbox", "auto", ("auto", "required", "off")),
    Setting("agent.writable", ()),
    Setting("agent.tools", ()),
    Setting("agent.max_turns", 200),
)


def _for_role(row: Setting, role: str) -> Setting:
    """Return a row of `[agent]` again, for one role."""
    name = row.name.replace("agent.", f"agent.roles.{role}.", 1)
    return Setting(name, row.default, row.choices, row.minimum, row.maximum)


TABLE: tuple[Setting, ...] = (
    Setting("namespace", "", form="namespace"),
    Setting("base_branch", ""),
    Setting("requests_dir", "requests", form="folder"),
    Setting("accept", "manual", ("manual", "auto")),
    Setting("commit_requests", default=False),
    Setting("language", "", ("", "ja", "en"), env_alias="AIFLOW_LANG"),
    *_AGENT,
    # Whether a role is called at all: not for one role again.
    Setting("agent.plan", ALWAYS, (ALWAYS, NEVER)),
    Setting("agent.review", ALWAYS, (ALWAYS, NEVER)),
    *(_for_role(row, role) for role in ROLES for row in _AGENT),
    Setting("tests.unit", ""),
    Setting("tests.e2e", ""),
    Setting("tests.timeout_seconds", 900, minimum=1),
    Setting("tests.idle_seconds", 900, minimum=1),
    Setting("tests.env", ()),
    Setting("tests.baseline", default=True),
    Setting("worktree.setup", ""),
    Setting("worktree.copy", ()),
    Setting("git.dirty_checkout", "fail", ("fail", "warn")),
    Setting("git.push", default=False),
    Setting("git.hooks", default=False),
    Setting("git.sign", default=False),
    Setting("limits.role_attempts", 2, minimum=1),
    Setting("limits.step_retries", 3),
    Setting("limits.step_files", 20, minimum=1),
    Setting("limits.step_lines", 400, minimum=1),
    Setting("limits.file_mb", 50),
    Setting("limits.issue_retries", 5),
    Setting("limits.quota_wait_hours", 24, maximum=100_000),
    Setting("limits.run_cost_usd", 0.0),
    Setting("limits.run_tokens", 0),
    Setting("limits.run_agent_calls", 0),
    Setting("limits.run_minutes", 0),
    Setting("limits.session_cost_usd", 0.0),
    Setting("limits.session_tokens", 0),
    Setting("limits.session_agent_calls", 0),
    Setting("limits.session_runs", 0),
    Setting("limits.session_minutes", 0),
    Setting("auto.stop_after_needs_input", 2),
    Setting("auto.stop_after_failed", 1),
    Setting("clean.after_days", 7),
    Setting("clean.runs_after_days", 0),
    Setting("notify.command", ""),
    Setting("notify.urls_env", ""),
    Setting("notify.timeout_seconds", 30, minimum=1),
    Setting("locks.ttl_seconds", 1800, minimum=1),
    Setting("queue.store", LOCAL_STORE, form="store"),
    Setting("queue.poll_ms", 1000, minimum=50),
    Setting("queue.heartbeat_timeout_seconds", 120, minimum=1),
    Setting("server.host", "127.0.0.1"),
    Setting("server.port", 4310, maximum=65535),
    Setting("server.auth", "token", ("token", "none")),
    Setting("server.hosts", ()),
    Setting("server.runner", "auto", ("auto", "always", "never")),
    Setting("server.session_days", 30, minimum=1, maximum=3650),
    Setting("server.url", ""),
    Setting("github.repo", "", form="repo"),
    Setting("github.api_url", "", form="safe_url"),
    Setting("github.token_env", "GITHUB_TOKEN"),
    Setting("github.webhook_secret_env", "GITHUB_WEBHOOK_SECRET"),
    Setting("github.app_id", ""),
    Setting("github.app_key_path", ""),
    Setting("github.service_account", ""),
    Setting("github.runners", ()),
    Setting("github.start", "auto", ("auto", "queue", "off")),
    Setting("github.poll_seconds", 30, minimum=5, maximum=86_400),
    Setting("github.bots", ()),
    Setting("github.pull_request", default=False),
    Setting("github.accept_closes", default=False),
    Setting("github.untrusted_comments", default=False),
)

BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in TABLE}
SECTIONS = frozenset(
    ".".join(parts[:depth])
    for parts in (setting.name.split(".") for setting in TABLE)
    for depth in range(1, len(parts))
)
