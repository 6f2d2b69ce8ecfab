"""Which language this call speaks: found before anything else is read, because errors need it too."""

from __future__ import annotations

import itertools
import os
import re

from aiflow import SETTINGS_FILE
from aiflow.messages import choose_language

_LANGUAGE_LINE = re.compile(r"""^[ \t\ufeff]*language[ \t]*=[ \t]*["'](ja|en)["']""", re.MULTILINE)
_SECTION = re.compile(r"^[ \t]*\[", re.MULTILINE)


def find_language(argv: list[str]) -> str:
    """Choose by `--lang`, `-c language=…`, AIFLOW_LANG, the project's settings, the locale, in this order."""
    flags = [value.partition("=")[2] for value in _options(argv, "-c") if value.startswith("language=")]
    wanted = (None, *flags, *_options(argv, "--lang"))
    return choose_language(wanted[-1], os.environ, _project_language(argv))


def _options(argv: list[str], *names: str) -> list[str]:
    """Look for an option's values before click does: `--name value`, `--name=value`, `-nvalue`."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    found: list[str] = []
    for word, after in itertools.pairwise((*own, "")):
        for name in names:
            if word == name:
                found.append(after)
            elif name.startswith("--"):
                found += [word.partition("=")[2]] if word.startswith(f"{name}=") else []
            elif word.startswith(name):
                found.append(word[len(name) :])
    return found


def _project_language(argv: list[str]) -> str | None:
    """Look only at the language in the settings at or above the project's folder; mistakes are for later."""
    try:
        folder = os.path.abspath((".", *_options(argv, "--project", "-C"))[-1])
    except OSError:  # the folder we are in is gone
        return None
    while True:
        path = os.path.join(folder, SETTINGS_FILE)
        if os.path.isfile(path):
            break
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    match = _LANGUAGE_LINE.search(_SECTION.split(text, maxsplit=1)[0])
    return match[1] if match else None
