"""What is known of programs that speak the Agent Client Protocol: the variables they take their keys and settings from.

One that is not here works as well; what it needs from the environment is then named in `agent.env`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.own_folders import program_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The keys of the providers that programs of many models know.
_PROVIDERS = (
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY"),
    *("DEEPSEEK_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
)
_GOOGLE = (
    *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"),
    *("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_GEMINI_BASE_URL", "GEMINI_MODEL"),
)
_CLAUDE = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR")
_CODEX = ("OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME")


@dataclass(frozen=True, slots=True)
class AcpProgram:
    """Which variables of the user's a program gets, which are set for it, and which unless the user sets them."""

    env_names: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    usual: Mapping[str, str] = field(default_factory=dict)

    def variables_for(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return what is set in an environment."""
        return {**{name: value for name, value in self.usual.items() if name not in environ}, **self.variables}


_OPENCODE = AcpProgram(
    (*_PROVIDERS, "OPENCODE_API_KEY", "OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT", "OPENCODE_CONFIG_DIR"),
    # Its errors on standard error as well: without them, waiting for a limit would look like work.
    # No plugins and servers of the worktree's: an agent may have written them, and the reviewer would run them.
    {
        "OPENCODE_PRINT_LOGS": "1",
        "OPENCODE_LOG_LEVEL": "ERROR",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    },
    # A refusal is news to the model, and not the end of its turn.
    {"OPENCODE_CONFIG_CONTENT": '{"experimental": {"continue_loop_on_deny": true}}'},
)
_KNOWN = {
    "opencode": _OPENCODE,
    "gemini": AcpProgram(_GOOGLE),
    "qwen": AcpProgram(_PROVIDERS),
    "goose": AcpProgram(_PROVIDERS),
    "claude": AcpProgram((*_CLAUDE, "CLAUDE_CODE_OAUTH_TOKEN")),
    "codex": AcpProgram(_CODEX),
}


def known(argv: Sequence[str]) -> AcpProgram:
    """Return what is known of the program of a command line."""
    return _KNOWN.get(program_name(argv), AcpProgram())
