"""Which language this call speaks: found before anything else is read, because errors need it too."""

from __future__ import annotations

import os
import re
from pathlib import Path

from aiflow import SETTINGS_FILE
from aiflow.messages import choose_language

_LANGUAGE_LINE = re.compile(r"""^[ \t]*language[ \t]*=[ \t]*["'](ja|en)["']""", re.MULTILINE)
_SECTION = re.compile(r"^[ \t]*\[", re.MULTILINE)


def find_language(argv: list[str]) -> str:
    """Choose by `--lang`, AIFLOW_LANG, the project's settings, the locale, in this order."""
    return choose_language(_option(argv, "--lang"), os.environ, _project_language(argv))


def _option(argv: list[str], name: str) -> str | None:
    """Look for an option before click does."""
    for index, word in enumerate(argv):
        if word == "--":
            return None
        if word == name and index + 1 < len(argv):
            return argv[index + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


def _project_language(argv: list[str]) -> str | None:
    """Look only at the language in the settings at or above the project's folder; mistakes are for later."""
    here = Path(_option(argv, "--project") or _option(argv, "-C") or ".").absolute()
    for folder in (here, *here.parents):
        try:
            text = (folder / SETTINGS_FILE).read_text(encoding="utf-8-sig", errors="replace")
        except OSError:
            continue
        match = _LANGUAGE_LINE.search(_SECTION.split(text, maxsplit=1)[0])
        return match[1] if match else None
    return None
