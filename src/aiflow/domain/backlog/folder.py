"""The folder of the request files (REQ-2): what may be there, judged by names alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.request import is_readme

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIX = ".md"


def is_request_file(name: str) -> bool:
    """Recognize a request by its file name; hidden files are tools' own, and a README is for people."""
    return name.endswith(SUFFIX) and name[0] != "." and name[:7].lower() != "readme."


def strangers(folder: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the files of a folder that are no requests: agents could not work on them, for it is put back (REQ-8)."""
    names = {path: path.removeprefix(f"{folder}/") for path in paths}
    return tuple(path for path, name in names.items() if "/" in name or not _belongs(name))


def _belongs(name: str) -> bool:
    return name.startswith(".") or is_readme(name) or is_request_file(name)
