"""The errors of the models' APIs, word for word as they come: status, headers, body."""

from __future__ import annotations

import time
from typing import Any

from e2e.model_turns import Refuse, Trouble

Refusal = tuple[int, dict[str, str], dict[str, Any]]

_ANTHROPIC: dict[Trouble, tuple[int, str, str]] = {
    Trouble.RATE_LIMIT: (
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 50,000 input tokens per minute.",
    ),
    Trouble.QUOTA: (429, "rate_limit_error", "This request would exceed your account's rate limit."),
    Trouble.UNAUTHORIZED: (401, "authentication_error", "invalid x-api-key"),
    Trouble.FORBIDDEN: (
        403,
        "permission_error",
        "Your API key does not have permission to use the specified resource.",
    ),
    Trouble.BILLING: (
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or "
        "purchase credits.",
    ),
    Trouble.SERVER_ERROR: (500, "api_error", "Internal server error"),
    Trouble.OVERLOADED: (529, "overloaded_error", "Overloaded"),
    Trouble.BAD_REQUEST: (400, "invalid_request_error", "messages: at least one message is required"),
    Trouble.TOO_LONG: (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
}

_OPENAI: dict[Trouble, tuple[int, str, str | None, str]] = {
    Trouble.RATE_LIMIT: (
        429,
        "tokens",
        "rate_limit_exceeded",
        "Rate limit reached for stub-model on tokens per min (TPM): Limit 30000, Used 30000, Requested 100. "
        "Please try again in {seconds}s.",
    ),
    Trouble.QUOTA: (429, "usage_limit_reached", None, "The usage limit has been reached"),
    Trouble.UNAUTHORIZED: (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    Trouble.FORBIDDEN: (403, "invalid_request_error", "model_not_found", "You do not have access to this model."),
    Trouble.BILLING: (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    Trouble.SERVER_ERROR: (500, "server_error", None, "The server had an error while processing your request."),
    Trouble.OVERLOADED: (503, "server_error", "server_is_overloaded", "The engine is currently overloaded."),
    Trouble.BAD_REQUEST: (400, "invalid_request_error", None, "Invalid value for 'input'."),
    Trouble.TOO_LONG: (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
}


def anthropic(refuse: Refuse) -> Refusal:
    """An error of Anthropic's Messages API."""
    status, kind, message = _ANTHROPIC[refuse.trouble]
    headers = {"request-id": "req_stub"}
    if refuse.trouble is Trouble.RATE_LIMIT:
        headers |= {"retry-after": str(refuse.seconds), "anthropic-ratelimit-input-tokens-remaining": "0"}
    if refuse.trouble is Trouble.QUOTA:
        reset = str(int(time.time()) + refuse.seconds)
        headers |= {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": reset,
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-5h-status": "rejected",
            "anthropic-ratelimit-unified-5h-reset": reset,
            "anthropic-ratelimit-unified-5h-utilization": "1.0",
            "anthropic-ratelimit-unified-overage-status": "rejected",
            "anthropic-ratelimit-unified-overage-disabled-reason": "org_level_disabled",
            "retry-after": str(refuse.seconds),
        }
    return status, headers, {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_stub"}


def openai(refuse: Refuse) -> Refusal:
    """An error of OpenAI's APIs; the used-up quota is that of a ChatGPT plan, as codex knows it."""
    status, kind, code, message = _OPENAI[refuse.trouble]
    error: dict[str, Any] = {
        "message": message.format(seconds=refuse.seconds),
        "type": kind,
        "param": None,
        "code": code,
    }
    headers = {"x-request-id": "req_stub"}
    if refuse.trouble is Trouble.RATE_LIMIT:
        headers |= {"retry-after": str(refuse.seconds), "x-ratelimit-remaining-tokens": "0"}
    if refuse.trouble is Trouble.SERVER_ERROR:  # without it opencode waits for longer and longer, a minute in all
        headers |= {"retry-after-ms": "200"}
    if refuse.trouble is Trouble.QUOTA:
        resets_at = int(time.time()) + refuse.seconds
        error |= {"plan_type": "plus", "resets_at": resets_at, "resets_in_seconds": refuse.seconds}
        headers |= {
            "x-codex-primary-used-percent": "100.0",
            "x-codex-primary-window-minutes": "300",
            "x-codex-primary-reset-at": str(resets_at),
        }
    return status, headers, {"error": error}
