"""What a page of the documentation tells its reader to save and to type, and whether the answer is what it shows.

On a page that is run,

- a block behind "Save this as `path`:" (次の内容を `path` として保存します。) is a file that the reader saves (an executable one if it begins with `#!`),
- a `console` block is what they type at the `$ ` and what they see,
- a comment `<!-- console … -->` is typed too but not shown: what the page says has happened meanwhile,
- `cd …` alone leads to where the rest is typed.

`…` alone on a line stands for any lines, within a line for any text. Some things differ from call to call: ids of runs,
tasks and runners, commits, times, processes, and so how wide a column is. The page shows an example of each. An id or
commit that a page shows means the same one wherever it shows it again, also in a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<language>\w*)\n(?P<code>.*?)^(?P=ticks)$", re.MULTILINE | re.DOTALL)
HIDDEN = re.compile(r"^<!-- console\n(?P<hidden>.*?)^-->$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(f"{FENCE.pattern}|{HIDDEN.pattern}", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"(?:\bSave this as `|次の内容を `)(?P<path>[^`\n]+)`(?::| として保存します。)\s*\Z")


class SavedFile(NamedTuple):
    """A file that the reader saves."""

    path: str
    text: str

    @property
    def is_program(self) -> bool:
        return self.text.startswith("#!")


class Example(NamedTuple):
    """A command at a prompt and what the page shows behind it."""

    command: str
    shown: list[str]
    is_hidden: bool = False


def fenced(text: str, *languages: str) -> Iterator[str]:
    """Yield the code blocks in some languages."""
    for match in FENCE.finditer(text):
        if match["language"] in languages:
            yield match["code"]


def without_code(text: str) -> str:
    """Return a page's sentences alone."""
    return BLOCK.sub("", text)


def actions(text: str) -> list[SavedFile | Example]:
    """Return what a page's reader does, in order, but for the examples that make the project itself."""
    found: list[SavedFile | Example] = []
    for match in BLOCK.finditer(text):
        saved = SAVED.search(text, 0, match.start())
        if saved:
            found.append(SavedFile(saved["path"], match["code"]))
        elif match["hidden"] is not None:
            found += _examples(match["hidden"], is_hidden=True)
        elif match["language"] == "console" and not match["code"].startswith("$ make"):
            found += _examples(match["code"])
    return found


def _examples(block: str, *, is_hidden: bool = False) -> list[Example]:
    found: list[Example] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Example(line[2:], [], is_hidden))
        else:
            found[-1].shown.append(line)
    return found


# What differs from call to call. One that is named again is the same one again.
NAMED = {
    "run": r"\bRUN-\d{8}-\d{6}-[0-9a-f]{6}\b",
    "task": r"\bTASK-\d{8}-\d{6}-\d{6}-[0-9a-f]{6}\b",
    "prompt": r"\bRQ-20\d{6}-[a-z]{4}\b",
    "runner": r"\b[a-zA-Z][\w.-]*-\d+-[0-9a-f]{8}\b",
    "commit": r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}\b",
}
PASSING = {
    "instant": r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d:\d\d",
    "clock": r"\b(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\b",  # with the date where it is not a terminal
    "day": r"\b\d{4}-\d\d-\d\d\b",
    "age": r"\b\d+ (?:s|min|h) ago\b",
    "length": r"[(（](?:\d+ ?(?:s|min|h|秒|分|時間) ?)+[)）]",
    "holder": r"\b\d+ @ [\w.-]+",
    "process": r"\bpid \d+, [\w.-]+",
}
TOKEN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in {**NAMED, **PASSING}.items()))


@dataclass
class Reader:
    """Goes through one page and remembers what the names on it stand for."""

    meanings: dict[str, str] = field(default_factory=dict)

    def typed(self, command: str) -> str:
        """Return what the reader types for a command of the page."""
        return TOKEN.sub(lambda match: self.meanings.get(match[0], match[0]), command)

    def sees(self, shown: list[str], output: str) -> bool:
        """Tell whether output is what the page shows."""
        groups: dict[str, str] = {}
        lines = (r"(?:.*\n)*?" if line == "…" else self._pattern(line, groups) + r"\n" for line in shown)
        match = re.fullmatch("".join(lines), output)
        if match is not None:
            self.meanings |= {name: match[group] for name, group in groups.items()}
        return match is not None

    def _pattern(self, line: str, groups: dict[str, str]) -> str:
        """Write a shown line as a pattern; `groups` are the names seen for the first time in this example."""
        parts: list[str] = []
        end = 0
        for token in TOKEN.finditer(line):
            parts += [_literal(line[end : token.start()]), self._stand_in(token, groups)]
            end = token.end()
        return "".join([*parts, _literal(line[end:])])

    def _stand_in(self, token: re.Match[str], groups: dict[str, str]) -> str:
        kind, name = token.lastgroup or "", token[0]
        if kind in PASSING:
            return f"{PASSING[kind]} *"
        if name in self.meanings:
            return re.escape(self.meanings[name])
        if name in groups:
            return f"(?P={groups[name]})"
        groups[name] = f"name{len(groups)}"
        pattern = f"[0-9a-f]{{{len(name)}}}" if kind == "commit" else NAMED[kind]
        return f"(?P<{groups[name]}>{pattern})"


def _literal(text: str) -> str:
    """Write text as a pattern: `…` is any text, and a gap between columns any gap."""
    return re.sub(r"(?<=\S)(?:\\ ){2,}", r" {2,}", re.escape(text)).replace("…", ".*")
