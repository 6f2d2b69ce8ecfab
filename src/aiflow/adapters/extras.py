"""The parts of aiflow that not every installation has: whether one is there, and what adds it to this installation."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from aiflow.errors import EnvironmentProblemError

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "aiflow-local"
# The library by which each is known; the others come with it.
LIBRARIES = {"acp": "acp", "github": "httpx2", "notify": "apprise"}
UV_TOOL, PIPX = "uv-receipt.toml", "pipx_metadata.json"


class Origin(NamedTuple):
    """What was installed: the package by its name, or a clone, which is a folder."""

    clone: str = ""
    is_editable: bool = False


def has_extra(extra: str) -> bool:
    """Return whether a part's library is there, without importing it."""
    from importlib.util import find_spec

    return find_spec(LIBRARIES[extra]) is not None


def origin() -> Origin:
    """Return from what this aiflow was installed, as its installer wrote down."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        told = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return Origin()
    folder = told.get("dir_info")
    if folder is None:
        return Origin()
    return Origin(unquote(urlsplit(told["url"]).path), bool(folder.get("editable")))


def extra_install(
    extra: str, prefix: str = sys.prefix, installed: Origin | None = None, has: Callable[[str], bool] = has_extra
) -> str:
    """Return the command that adds a part the way aiflow was installed, and keeps the parts that are there."""
    installed = installed or origin()
    # uv and pipx install everything again, with the parts that are named and no others.
    together = ",".join(name for name in LIBRARIES if name == extra or has(name))
    if Path(prefix, UV_TOOL).is_file():
        return f'uv tool install "{installed.clone or NAME}[{together}]"'
    if Path(prefix, PIPX).is_file():
        return f'pipx install --force "{installed.clone or NAME}[{together}]"'
    if installed.is_editable:
        return f'{shlex.quote(str(Path(prefix, "bin/pip")))} install -e "{installed.clone}[{extra}]"'
    return f'pip install "{installed.clone or NAME}[{extra}]"'


def github_missing(problem: str) -> EnvironmentProblemError:
    """Return the refusal where the packages for GitHub are not there."""
    return EnvironmentProblemError(reason_code="GITHUB_NOT_INSTALLED", problem=problem, install=extra_install("github"))
