"""The local mirror (ISS-1): issues as they were last seen, one file each, so that reading the backlog costs no call."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import STATE_DIR, read_own, replace_file, state_dir, translated
from aiflow.adapters.files.guard_files import guarded
from aiflow.adapters.github_issues.stored import read_story, write_story

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from aiflow.domain.issues.issue import Story

FOLDER = "github"
MOST_BYTES = 50_000_000


class IssueMirror:
    """The issues of one repository as this checkout last saw them; lost, it is filled again by the next sync."""

    def __init__(self, root: Path, repo: str) -> None:
        self._root = root
        # Two repositories never share a folder: of a name only these characters are possible.
        self._parts = (FOLDER, *repo.lower().split("/"))

    def numbers(self) -> list[int]:
        """Return the numbers of all issues that were seen, in order."""
        folder = self._folder / "issues"
        names = (path.stem for path in folder.glob("*.json")) if folder.is_dir() else ()
        return sorted(int(name) for name in names if name.isdecimal())

    def stories(self) -> list[Story]:
        """Return every issue that was seen, in the order of their numbers."""
        return [story for number in self.numbers() if (story := self.story(number)) is not None]

    def story(self, number: int) -> Story | None:
        """Return an issue as it was last seen; None if it never was, or is no more."""
        try:
            return read_story(read_own(self._file(number), MOST_BYTES))
        except FileNotFoundError:
            return None
        except OSError:  # a link, or no plain file: not ours
            return None

    def keep(self, story: Story) -> bool:
        """Keep an issue as it was just seen; returns whether that is news."""
        path = self._file(story.issue.number)
        written = write_story(story)
        with translated(path):
            folder = state_dir(self._root, *self._parts, "issues")
            try:
                if read_own(path, MOST_BYTES) == written:
                    return False
            except FileNotFoundError:
                pass
            replace_file(path, written, folder)
        return True

    def forget(self, number: int) -> None:
        """Forget an issue that is no more: deleted, or transferred to another repository."""
        with translated(self._file(number)):
            self._file(number).unlink(missing_ok=True)

    def note(self, name: str) -> dict[str, object]:
        """Return what was noted under a name; nothing if that cannot be read."""
        try:
            noted = json.loads(read_own(self._folder / f"{name}.json", MOST_BYTES))
        except (OSError, ValueError):
            return {}
        return noted if isinstance(noted, dict) else {}

    def put_note(self, name: str, facts: Mapping[str, object]) -> None:
        """Note facts under a name, in the place of those before."""
        path = self._folder / f"{name}.json"
        with translated(path):
            folder = state_dir(self._root, *self._parts)
            replace_file(path, json.dumps(facts, ensure_ascii=False).encode(), folder)

    @contextlib.contextmanager
    def alone(self, number: int) -> Iterator[None]:
        """Be the only one of this checkout that looks at an issue and writes to it."""
        with translated(self._folder), guarded(state_dir(self._root, *self._parts, "guards") / str(number)):
            yield

    @property
    def _folder(self) -> Path:
        return self._root.joinpath(STATE_DIR, *self._parts)

    def _file(self, number: int) -> Path:
        return self._folder / "issues" / f"{number}.json"
