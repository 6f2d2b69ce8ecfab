"""A fast-forward of a person's checkout that was cut off in the middle (GIT-3): git and aiflow gone, as by a power cut.

Before git begins, a record in the repository's git folder says what it is about to write, and how all that looked. Git
writes the files, then the index, then the branch. So a process that finds the record later ends the move if the index
has it, and else puts back each file that is as in the merge, or the beginning of that. Anything else stays.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiflow.adapters.files.atomic_files import read_regular, replace_file, translated
from aiflow.adapters.git.commits import leads_to
from aiflow.adapters.git.git_files import GitCheckout, is_same_path
from aiflow.adapters.git.merging.checkouts import find_uses
from aiflow.adapters.git.merging.undo import Writing
from aiflow.adapters.processes.table import is_open_anywhere
from aiflow.domain.runs.merge import CutOffMove
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.adapters.git.git_cli import Git

NAME = "aiflow-fast-forward.json"
_MOST_BYTES = 1_000_000_000
# What a person prepared for the next commit: git removes it with every merge.
_MESSAGES = ("MERGE_MSG", "SQUASH_MSG")


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """What is on disk while git fast-forwards a checkout; `git_dir` is relative to the repository's own."""

    run_id: str
    git_dir: str
    ref: str
    old: str
    new: str
    orig_head: str
    messages: Mapping[str, str]
    writing: Mapping[str, Any]
    verb: str = "accept"  # a record of an older aiflow has none

    @classmethod
    def of(
        cls, checkout: GitCheckout, run_id: str, move: tuple[str, str, str], writing: Writing, verb: str
    ) -> MoveRecord:
        """Note a move (ref, old, new) in a checkout before it begins."""
        texts = {}
        for name in _MESSAGES:
            with contextlib.suppress(OSError), open(os.path.join(checkout.git_dir, name), "rb") as file:
                texts[name] = base64.b64encode(file.read()).decode("ascii")
        git_dir = os.path.relpath(checkout.git_dir, checkout.common)
        return cls(run_id, git_dir, *move, orig_head_of(writing.git), texts, writing.fields(), verb)

    @classmethod
    def read(cls, common: str) -> MoveRecord | None:
        """Read the record of a repository; None if there is none, or it cannot be read."""
        try:
            return cls(**json.loads(read_regular(_path(common), _MOST_BYTES)))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, common: str) -> None:
        """Put it on disk, for good."""
        with translated(common):
            replace_file(Path(_path(common)), json.dumps(asdict(self)).encode(), Path(common))

    def remove(self, common: str) -> None:
        """Forget it: the move is over."""
        with translated(common), contextlib.suppress(FileNotFoundError):
            os.unlink(_path(common))

    def told(self, git: Git, common: str) -> CutOffMove | None:
        """Return which move it is; None if its checkout cannot be reached now."""
        checkout = self._checkout(git, common)
        return self._cut_off(checkout) if checkout else None

    def put_right(self, git: Git, common: str, lock_seconds: float, *, is_dead: bool = False) -> CutOffMove | None:
        """End the move or take it back, and forget it; not while another git is at work there.

        Called while no other aiflow uses the repository, so the git that was cut off is gone. `is_dead`: it was ours;
        no need to wait for its locks.
        """
        checkout = self._checkout(git, common)
        if checkout is None:
            return None
        there = replace(git, cwd=checkout.path)
        writing = Writing.again(there, self.old, self.new, self.writing)
        until = time.monotonic() + (0.0 if is_dead else lock_seconds)
        locks = tuple(name for name in self._locks(checkout) if not self._clear(name, writing, until))
        if locks:
            return replace(self._cut_off(checkout), locks=locks)
        done = self._settle(there, checkout, writing)
        self.remove(common)
        return done

    def bring_back_messages(self, checkout: GitCheckout) -> None:
        """Bring back what git removed with the merge."""
        for name, text in self.messages.items():
            with contextlib.suppress(OSError), open(os.path.join(checkout.git_dir, name), "xb") as file:
                file.write(base64.b64decode(text))

    def bring_back_orig_head(self, there: Git) -> None:
        """Bring back what was there before git noted where it was: it does so before it looks whether it can."""
        if orig_head_of(there) != self.orig_head:
            there.run("update-ref", *(("ORIG_HEAD", self.orig_head) if self.orig_head else ("-d", "ORIG_HEAD")))

    def _settle(self, there: Git, checkout: GitCheckout, writing: Writing) -> CutOffMove:
        found = self._cut_off(checkout)
        now = there.run("rev-parse", "-q", "--verify", f"{self.ref}^{{commit}}", ok=(0, 1)).word
        if now != self.old or checkout.head() != self.ref:  # it has moved, or a person continued from there
            has_moved = bool(now) and leads_to(there, self.new, now)
            if now == self.new:
                self.bring_back_messages(checkout)
            return replace(found, has_moved=has_moved)
        if writing.is_staged():
            there.run("update-ref", "-m", f"aiflow: {self.verb} {self.run_id}", "HEAD", self.new, self.old)
            return replace(found, has_moved=True)
        left = writing.restore()
        self.bring_back_orig_head(there)
        return replace(found, left=tuple(left))

    def _checkout(self, git: Git, common: str) -> GitCheckout | None:
        """Find the checkout, wherever it is by now."""
        git_dir = os.path.join(common, self.git_dir)
        found = (use.checkout for use in find_uses(git, common) if use.checkout)
        return next((each for each in found if is_same_path(each.git_dir, git_dir)), None)

    def _cut_off(self, checkout: GitCheckout) -> CutOffMove:
        return CutOffMove(self.run_id, checkout.path, self.ref.removeprefix("refs/heads/"))

    def _locks(self, checkout: GitCheckout) -> list[str]:
        names = [os.path.join(checkout.git_dir, name) for name in ("index.lock", "HEAD.lock", "ORIG_HEAD.lock")]
        return [*names, os.path.join(checkout.common, f"{self.ref}.lock")]

    def _clear(self, path: str, writing: Writing, until: float) -> bool:
        """Remove a lock that the git left which was cut off; False if it is another's, who is given a moment."""
        while os.path.lexists(path):
            if time.monotonic() >= until:
                if is_open_anywhere(path) or not self._is_ours(path, writing):
                    return False
                with translated(path), contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            else:
                time.sleep(0.05)
        return True

    def _is_ours(self, path: str, writing: Writing) -> bool:
        """Return, by what a lock says, whether the git that was cut off made it."""
        try:
            data = read_regular(path, _MOST_BYTES)
        except OSError:
            return False
        if not path.endswith("index.lock"):
            return data.strip() in (b"", self.old.encode(), self.new.encode())
        # A whole index that is not the merge's is of a git that waits for a person: `commit` with an editor open.
        with contextlib.suppress(AiflowError):
            return not data or writing.is_staged(path)
        return True


def is_recorded(common: str) -> bool:
    """Return whether there is a record; one look at a name, for every command asks."""
    return os.path.lexists(_path(common))


def orig_head_of(git: Git) -> str:
    """Return the commit that git noted last as the one before, "" if none."""
    return git.run("rev-parse", "-q", "--verify", "ORIG_HEAD", ok=(0, 1)).word


def _path(common: str) -> str:
    return os.path.join(common, NAME)
