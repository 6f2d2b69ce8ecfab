"""The forms that texts among the settings have to have (CFG), where a list of choices cannot say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.settings.table import AWS_STORE, LOCAL_STORE

if TYPE_CHECKING:
    from urllib.parse import SplitResult

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def is_store(value: str) -> bool:
    """Return whether a text names a queue store: this machine's, AWS, or a URL without a user's name in it (QUE-2)."""
    return value in (LOCAL_STORE, AWS_STORE) or _plain_url(value) is not None


def is_safe_url(value: str) -> bool:
    """Return whether a text is an address that a token may be sent to: https, or this machine; or empty."""
    url = _plain_url(value)
    return value == "" or (url is not None and (url.scheme == "https" or url.hostname in _LOOPBACK))


def _plain_url(value: str) -> SplitResult | None:
    """Read an address with nothing in it but scheme, host, port and path; None if it is none."""
    from urllib.parse import urlsplit

    try:
        url = urlsplit(value)
        is_reachable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:  # a port that is none, or half an IPv6 address
        return None
    is_plain = value.isascii() and value.isprintable() and " " not in value
    has_more = url.username or url.password or url.query or url.fragment
    return url if is_reachable and is_plain and not has_more else None


def is_repo(value: str) -> bool:
    """Return whether a text names a repository of GitHub's, owner/name; an empty one names none."""
    import re

    return value == "" or re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*/(?!\.{1,2}\Z)[A-Za-z0-9._-]+", value) is not None


def is_folder(value: str) -> bool:
    """Return whether a text is a folder below the repository's root, written plainly, not git's and not aiflow's."""
    parts = value.removesuffix("/").split("/")
    is_plain = value.isprintable() and "\\" not in value and not any(part in ("", ".", "..") for part in parts)
    return is_plain and parts[0].casefold() not in (".git", ".aiflow", "runs")


def is_namespace(value: str) -> bool:
    """Return whether a text can be a namespace; an empty one lets it be worked out (QUE-5)."""
    from aiflow.domain.queue.namespace import check_namespace
    from aiflow.errors import BadInputError

    try:
        return value == "" or bool(check_namespace(value))
    except BadInputError:
        return False
