"""The forms that texts among the settings have to have (CFG), where a list of choices cannot say it."""

from __future__ import annotations

from aiflow.settings.table import AWS_STORE, LOCAL_STORE


def is_store(value: str) -> bool:
    """Tell whether a text names a queue store: this machine's, AWS, or a URL without a user's name in it (QUE-2)."""
    if value in (LOCAL_STORE, AWS_STORE):
        return True
    from urllib.parse import urlsplit

    try:
        url = urlsplit(value)
        is_reachable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:  # a port that is none, or half an IPv6 address
        return False
    is_plain = value.isascii() and value.isprintable() and " " not in value
    return is_reachable and is_plain and not (url.username or url.password or url.query or url.fragment)


def is_folder(value: str) -> bool:
    """Tell whether a text is a folder below the repository's root, written plainly, and neither git's nor aiflow's."""
    parts = value.removesuffix("/").split("/")
    is_plain = value.isprintable() and "\\" not in value and not any(part in ("", ".", "..") for part in parts)
    return is_plain and parts[0].casefold() not in (".git", ".aiflow", "runs")


def is_namespace(value: str) -> bool:
    """Tell whether a text can be a namespace; an empty one lets it be worked out (QUE-5)."""
    from aiflow.domain.queue.namespace import check_namespace
    from aiflow.errors import BadInputError

    try:
        return value == "" or bool(check_namespace(value))
    except BadInputError:
        return False
