"""Nothing English in Japanese (ERR-1): what is refused and what stops, read by a person who has set Japanese."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from interfaces.recorded_scenes import JAPANESE, accepting, edits, refusals, runs
from interfaces.recording import Stage

# Three words in a row are a sentence; a name, an id, a key of a file or a command is not.
SENTENCE = re.compile(r"(?<![\w./'-])[A-Za-z]?[a-z]+(?: [a-z]+){2,}(?![\w./=-])")
# What is somebody else's to say: in code, between quotation marks, behind a mark of quotation, or in a list of commands.
QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|^ *(?:[>│|→].*|aiflow .*|\d\. .*)", re.MULTILINE)
# Quoted as it came: the reader of TOML, the operating system, and the question of the scene's agent.
OTHERS = {"at the end of a table declaration", "No such file or directory", "Blue or green"}


class Reader(Stage):
    """Plays a scene for a person who reads Japanese, and keeps what they see of refusals and stops."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, JAPANESE)
        self.read: list[tuple[str, str]] = []

    def begin(self, line: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start the program as a person does."""
        return super().begin(line, {**(env or {}), **JAPANESE})

    def arguments(self, line: str) -> list[str]:
        """Give the words of a call, without `--json`."""
        return super().arguments(line)[:-1]

    def ended(
        self, process: subprocess.Popen[str], line: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> Any:
        """Keep what a call that did not go well has said."""
        out, err = process.communicate(stdin, timeout=60)
        self._processes.remove(process)
        if process.returncode:
            self.read.append((line, out + err))


@pytest.mark.spec("ERR-1")
@pytest.mark.parametrize("scene", [refusals, edits, runs, accepting], ids=lambda scene: scene.__name__)
def test_who_reads_japanese_reads_no_english_sentence(scene: Callable[[Stage], None], tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    try:
        scene(reader)
    finally:
        reader.close()
    assert len(reader.read) > 5
    found = {(line, hit[0]) for line, text in reader.read for hit in SENTENCE.finditer(QUOTED.sub("", text))}
    assert {(line, hit) for line, hit in found if hit not in OTHERS} == set()
