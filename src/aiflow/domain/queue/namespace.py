"""Namespaces (QUE-5, QUE-9): one queue store, many projects, none of which sees the others."""

from __future__ import annotations

import re
import unicodedata

from aiflow.errors import BadInputError

NAMESPACE_CHARACTERS = 64
_ALLOWED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def check_namespace(name: str) -> str:
    """Return a namespace that can be used in keys, file names and commands, or raise NAMESPACE_INVALID."""
    if len(name) > NAMESPACE_CHARACTERS or not _ALLOWED.fullmatch(name):
        raise BadInputError(reason_code="NAMESPACE_INVALID", namespace=name, most=NAMESPACE_CHARACTERS)
    return name


def default_namespace(folder: str, digest: str) -> str:
    """Make a checkout's own namespace: its folder's name as far as that can be used, and a hash of its path."""
    plain = unicodedata.normalize("NFKD", folder).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._") or "project"
    return f"{name[: NAMESPACE_CHARACTERS - 9]}-{digest[:8]}"
