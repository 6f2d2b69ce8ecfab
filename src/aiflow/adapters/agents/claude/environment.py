"""Claude's environment (AGT-4): what it gets of the user's, what is added, and what the commands it runs do not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.adapters.secrets import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAMES = """
ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_BASE_URL ANTHROPIC_CUSTOM_HEADERS ANTHROPIC_BETAS
ANTHROPIC_MODEL ANTHROPIC_SMALL_FAST_MODEL
ANTHROPIC_DEFAULT_OPUS_MODEL ANTHROPIC_DEFAULT_SONNET_MODEL ANTHROPIC_DEFAULT_HAIKU_MODEL
CLAUDE_CODE_OAUTH_TOKEN CLAUDE_CONFIG_DIR CLAUDE_CODE_API_KEY_HELPER_TTL_MS
CLAUDE_CODE_CLIENT_CERT CLAUDE_CODE_CLIENT_KEY CLAUDE_CODE_CLIENT_KEY_PASSPHRASE
CLAUDE_CODE_MAX_RETRIES CLAUDE_CODE_MAX_OUTPUT_TOKENS CLAUDE_CODE_EFFORT_LEVEL MAX_THINKING_TOKENS API_TIMEOUT_MS
BASH_DEFAULT_TIMEOUT_MS BASH_MAX_TIMEOUT_MS ENABLE_TOOL_SEARCH
"""
_BEDROCK = """
AWS_REGION AWS_DEFAULT_REGION AWS_PROFILE AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
AWS_BEARER_TOKEN_BEDROCK AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE AWS_ROLE_ARN AWS_WEB_IDENTITY_TOKEN_FILE
ANTHROPIC_BEDROCK_BASE_URL ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION CLAUDE_CODE_SKIP_BEDROCK_AUTH
"""
_VERTEX = """
CLOUD_ML_REGION ANTHROPIC_VERTEX_PROJECT_ID ANTHROPIC_VERTEX_BASE_URL GOOGLE_APPLICATION_CREDENTIALS
GOOGLE_CLOUD_PROJECT GCLOUD_PROJECT CLOUDSDK_CONFIG CLAUDE_CODE_SKIP_VERTEX_AUTH
"""
_FOUNDRY = """
ANTHROPIC_FOUNDRY_API_KEY ANTHROPIC_FOUNDRY_RESOURCE ANTHROPIC_FOUNDRY_BASE_URL CLAUDE_CODE_SKIP_FOUNDRY_AUTH
"""
# Where the user says that the model is in a cloud, what that cloud needs.
CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": _BEDROCK,
    "CLAUDE_CODE_USE_VERTEX": _VERTEX,
    "CLAUDE_CODE_USE_FOUNDRY": _FOUNDRY,
}
# The call is unattended: nothing runs after it, is remembered outside the worktree, or is sent in addition.
VARIABLES = {
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_CRON": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING": "1",
    "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1",
}
# Claude's own, which would let a command speak to the session that it runs in.
_SESSIONS = ("CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN")


def env_names(environ: Iterable[str]) -> tuple[str, ...]:
    """Name the variables that claude is given where the user has them."""
    found = set(environ)
    clouds = [switch for switch in CLOUDS if switch in found]
    regions = (
        [name for name in found if name.startswith("VERTEX_REGION_")] if "CLAUDE_CODE_USE_VERTEX" in clouds else []
    )
    of_clouds = (name for switch in clouds for name in (switch, *CLOUDS[switch].split()))
    return (*_NAMES.split(), *of_clouds, *sorted(regions))


def hidden_names(names: Iterable[str], shared: Iterable[str]) -> tuple[str, ...]:
    """Name the variables that are claude's alone: its keys, but for those that the settings share (`agent.env`)."""
    own = {name for name in names if is_secret_name(name)} - set(shared)
    return (*sorted(own), *_SESSIONS)
