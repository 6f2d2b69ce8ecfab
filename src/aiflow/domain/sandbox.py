"""Sandboxes (AGT-4, SEC): whose agents the kernel confines to what they may write."""

from __future__ import annotations

from enum import StrEnum


class Sandbox(StrEnum):
    """What `agent.sandbox` says."""

    AUTO = "auto"
    REQUIRED = "required"
    OFF = "off"


# Codex brings a sandbox that needs to mount, which nobody may do who is confined already.
BRING_THEIR_OWN = frozenset({"codex"})
# A program of the user's own may have to write anywhere: it is confined only where that is asked for.
LEFT_ALONE = frozenset({"command", "demo"})


def is_confined(kind: str, sandbox: str) -> bool:
    """Tell whether agents of a kind are to be confined by the kernel."""
    if kind in BRING_THEIR_OWN or sandbox == Sandbox.OFF:
        return False
    return sandbox == Sandbox.REQUIRED or kind not in LEFT_ALONE
