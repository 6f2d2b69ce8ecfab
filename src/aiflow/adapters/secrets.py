"""Masking secrets (AGT-4, SEC): values of secret-looking variables, and texts that look like a token."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MASK = b"***"
LEAST_SECRET = 8
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|PRIVATE|DSN|COOKIE|SESSION", re.IGNORECASE)
# Variables whose names look secret but that only say where something is.
_HARMLESS_NAME = re.compile(r"(_SOCK|_PATH|_FILE|_DIR|_HOME|_ENV|_ID|_TYPE|_CLASS|_DESKTOP)$|^(XDG|DBUS|SSH_AUTH)_")
_TOKENS = re.compile(
    rb"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{20,}"
    rb"|sk-[A-Za-z0-9_-]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{35}"
    rb"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}|hf_[A-Za-z0-9]{30,}"
    rb"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"
)
_IN_URL = re.compile(rb"(?<=://)([^\s/:@]+):([^\s/@]+)(?=@)")
_HEADER = re.compile(rb"(?i)\b(authorization:\s*(?:bearer|basic|token)\s+)\S+")


class Masker:
    """Masks the secrets of one environment, and what looks like one of anybody's."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        values = {value for name, value in environ.items() if is_secret_name(name) and len(value) >= LEAST_SECRET}
        found = sorted((value.encode("utf-8", "surrogateescape") for value in values), key=len, reverse=True)
        self._values = re.compile(b"|".join(map(re.escape, found))) if found else None

    def mask(self, data: bytes) -> bytes:
        """Return a text with every secret in it masked."""
        if self._values is not None:
            data = self._values.sub(MASK, data)
        data = _TOKENS.sub(MASK, data)
        data = _IN_URL.sub(rb"\1:***", data) if b"://" in data else data
        return _HEADER.sub(rb"\1***", data) if b":" in data else data

    def mask_text(self, text: str) -> str:
        """The same for a text."""
        return self.mask(text.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")


def is_secret_name(name: str) -> bool:
    """Tell a variable that most likely holds a secret by its name."""
    return bool(_SECRET_NAME.search(name)) and not _HARMLESS_NAME.search(name)
