"""Moving the base branch to a merge (GIT-3): the only write aiflow makes in a user's checkout.

A branch that is not checked out is moved by compare-and-swap. Moving one under a checkout would show there as
staged reversals, so git fast-forwards it in that checkout, and refuses before it touches anything. What it is about to
write is on disk before it begins: the next process puts right what a power cut left of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiflow.adapters.git.commits import leads_to
from aiflow.adapters.git.merging.checkouts import find_uses, what_rewrites
from aiflow.adapters.git.merging.cut_off import MoveRecord, is_recorded
from aiflow.adapters.git.merging.undo import Writing, half_written
from aiflow.adapters.git.repository_facts import commit_of, readable
from aiflow.errors import ConflictError, EnvironmentProblemError
from aiflow.messages.details import as_text, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.adapters.git.git_cli import Done, Git
    from aiflow.adapters.git.git_files import GitCheckout
    from aiflow.domain.runs.merge import CutOffMove, Merge
    from aiflow.domain.runs.worktree import Place
    from aiflow.errors import AiflowError

# Editors and prompts ask git for the status all the time; their locks are gone in a moment.
_LOCK_SECONDS = 2.0
# How long to wait for another move, even for a git whose aiflow was killed; after that its own locks decide.
_MOVE_SECONDS = 60.0
_NAMED_FILES = 20
_ANY = (0, 1, 2, 128)
# Most of these undo settings of the user's: `merge.*`, `pull.twohead`.
_FAST_FORWARD = (
    *("merge", "--quiet", "--ff-only", "--no-overwrite-ignore", "--no-autostash", "--no-stat"),
    *("--no-verify-signatures", "--strategy=ort"),
)
_FILES = re.compile(rb":\n\t(.*?)(?=\nPlease |\nAborting|\nerror: |\n\n|\n?\Z)", re.DOTALL)
_REFUSALS = (b"unmerged files", b"have not concluded your", b"not uptodate. Cannot merge", b".lock': File exists")


def move_base(git: Git, common: str, place: Place, merge: Merge, new: str) -> bool:
    """Move the base branch to a merge on top of it, or its revert; True if it has that, False if it is elsewhere."""
    ref = f"refs/heads/{place.base_branch}"
    ref = git.run("symbolic-ref", "-q", ref, ok=(0, 1)).word or ref  # such a branch is another name of this one
    with _alone(common) as (held, is_alone):
        if is_alone and (record := MoveRecord.read(common)):
            record.put_right(git, common, _LOCK_SECONDS)
        move = _Move(git, common, place, merge.base, new, ref, held, merge.verb)
        return move.is_there() or (move.is_at_old() and move.perform())


def put_right(git: Git, common: str) -> CutOffMove | None:
    """Put right what a fast-forward left that was cut off together with its aiflow; None if there was none."""
    if not is_recorded(common):
        return None
    with _alone(common) as (_, is_alone):
        record = MoveRecord.read(common) if is_alone else None
        return record.put_right(git, common, _LOCK_SECONDS) if record else None


def find_cut_off(git: Git, common: str) -> CutOffMove | None:
    """Return a fast-forward that was cut off and not put right yet; one in progress does not count."""
    if not is_recorded(common):
        return None
    folder = os.open(common, os.O_RDONLY | os.O_CLOEXEC)
    try:
        record = MoveRecord.read(common) if _lock(folder) else None
        return record.told(git, common) if record else None
    finally:
        os.close(folder)


@dataclass(frozen=True, slots=True)
class _Move:
    """One move of the base branch."""

    git: Git
    common: str
    place: Place
    old: str
    new: str
    ref: str
    held: int
    verb: str

    def stands_at(self) -> str:
        """Return the commit the base branch is at now."""
        now = commit_of(self.git, self.place.base_branch, self.common)
        if now is None:
            raise EnvironmentProblemError(reason_code="BASE_BRANCH_MISSING", branch=self.place.base_branch)
        return now

    def is_at_old(self) -> bool:
        return self.stands_at() == self.old

    def is_there(self) -> bool:
        return leads_to(self.git, self.new, self.stands_at())

    def perform(self) -> bool:
        """Move the branch, in the checkout that has it if there is one."""
        checkout = self.find_checkout()
        if checkout is None:
            done, told = self.swap(), ""
        else:
            self.wait_for_locks(checkout)
            if not self.is_at_old():
                return self.is_there()
            done, told = self.write(checkout)
        if self.is_there():
            return True
        if not self.is_at_old():
            return False
        raise self.refusal(checkout, done, told)

    def find_checkout(self) -> GitCheckout | None:
        """Return the one worktree that has the branch, or None; raise if what happens there forbids moving it."""
        uses = list(find_uses(self.git, self.common))
        branch = self.place.base_branch
        for use in uses:
            if use.checkout and (name := what_rewrites(use.checkout, self.ref)):
                raise _in_the_way(use.path, words("in_the_way.rewriting", name=name, branch=branch))
        uses = [use for use in uses if use.ref == self.ref]
        if not uses:
            return None
        if gone := next((use for use in uses if use.is_gone), None):
            raise _in_the_way(gone.path, words("in_the_way.gone", branch=branch))
        path, checkout = uses[0].path, uses[0].checkout
        if len(uses) > 1:
            raise _in_the_way(path, words("in_the_way.twice", branch=branch, other=uses[1].path))
        if checkout is None:
            raise _in_the_way(path, words("in_the_way.unreachable", branch=branch))
        if under_way := checkout.under_way():
            files = _unmerged(replace(self.git, cwd=path))
            raise _in_the_way(path, words("in_the_way.under_way", names=", ".join(under_way)), files)
        return checkout

    def wait_for_locks(self, checkout: GitCheckout) -> None:
        """Wait a moment for a process that holds what a fast-forward needs: at its end it is too late to refuse."""
        names = (f"{checkout.git_dir}/index.lock", f"{checkout.git_dir}/HEAD.lock", f"{self.common}/{self.ref}.lock")
        until = time.monotonic() + _LOCK_SECONDS
        while held := [name for name in names if os.path.lexists(name)]:
            if time.monotonic() > until:
                why = words("in_the_way.locks", names=", ".join(held))
                raise _in_the_way(checkout.path, why)
            time.sleep(0.05)

    def swap(self) -> Done:
        """Move the branch if it still is where it was."""
        return self.git.run("update-ref", "-m", self.reason, self.ref, self.new, self.old, ok=_ANY)

    def write(self, checkout: GitCheckout) -> tuple[Done, str]:
        """Fast-forward a checkout; if git fails in the middle of it, put back what it wrote and report what is left."""
        there = replace(self.git, cwd=checkout.path)
        writing = Writing.of(there, self.old, self.new)
        if files := writing.deleted():
            raise _in_the_way(checkout.path, words("in_the_way.deleted"), files)
        record = MoveRecord.of(checkout, self.place.run_id, (self.ref, self.old, self.new), writing, self.verb)
        record.write(self.common)
        done = self.fast_forward(there)
        if done.code < 0:
            put_right = record.put_right(self.git, self.common, _LOCK_SECONDS, is_dead=True)
            return done, half_written(list(put_right.left)) if put_right else ""
        record.bring_back_messages(checkout)
        if done.code:
            record.bring_back_orig_head(there)
        told = writing.put_back() if done.code and self.is_at_old() else ""
        record.remove(self.common)
        return done, told

    def fast_forward(self, there: Git) -> Done:
        """Let git fast-forward a checkout; if it refuses, nothing has changed.

        Ended in the middle it would leave half of the files and a lock behind, so nothing of ours may end it.
        """
        # In the environment, for a branch may have a name that cannot precede `=`.
        own_options = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_VALUE_0": "", "GIT_REFLOG_ACTION": self.reason}
        own_options["GIT_CONFIG_KEY_0"] = f"branch.{self.ref.removeprefix('refs/heads/')}.mergeOptions"
        return there.run_to_the_end(*_FAST_FORWARD, self.new, environ=own_options, held=self.held)

    def refusal(self, checkout: GitCheckout | None, done: Done, told: str) -> AiflowError:
        """Name why git did not move the branch."""
        if checkout is not None and done.code < 0:
            problem = _both(words("git.killed", signal=-done.code, path=checkout.path), told)
            return EnvironmentProblemError(reason_code="GIT_FAILED", command="git merge --ff-only", problem=problem)
        if checkout is not None:
            files = _files_of(done)
            if files or any(saying in done.err for saying in _REFUSALS):
                files = files or _unmerged(replace(self.git, cwd=checkout.path))
                why = self.what_is_known(checkout, files) if files else os.fsdecode(done.err.strip())[-300:]
                return _in_the_way(checkout.path, _both(why, told), files)
        error = self.git.problem(("merge" if checkout else "update-ref", self.ref, self.new), done)
        if told:
            error.context["problem"] = _both(error.context["problem"], told)
        return error

    def what_is_known(self, checkout: GitCheckout, files: list[str]) -> str:
        """Return which of the files in the way are what the merge would write: a git that was killed left them so."""
        there = replace(self.git, cwd=checkout.path)
        same = [name for name in files[:_NAMED_FILES] if _is_written(there, name, self.new)]
        return words("in_the_way.same", files=", ".join(same)) if same else ""

    @property
    def reason(self) -> str:
        """What the reflog says."""
        return f"aiflow: {self.verb} {self.place.run_id}"


@contextlib.contextmanager
def _alone(common: str) -> Iterator[tuple[int, bool]]:
    """Let one aiflow at a time move branches of a repository: two fast-forwards in one checkout would mix.

    Gives the open file whose lock that is, and whether it is ours: a git that keeps it open is waited for, even when
    its aiflow is gone, but not for ever.
    """
    folder = os.open(common, os.O_RDONLY | os.O_CLOEXEC)
    until = time.monotonic() + _MOVE_SECONDS
    is_alone = False
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            while not (is_alone := _lock(folder)) and time.monotonic() < until:
                time.sleep(0.05)
        yield folder, is_alone
    finally:
        os.close(folder)


def _lock(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _files_of(done: Done) -> list[str]:
    """Return the files that git names, one after a tab on each line; a name may have a line break."""
    return sorted({readable(name) for block in _FILES.findall(done.err) for name in block.split(b"\n\t")})


def _is_written(git: Git, name: str, commit: str) -> bool:
    """Return whether a file of a checkout has the content that a commit has."""
    wanted = git.run("rev-parse", "-q", "--verify", f"{commit}:{name}", ok=(0, 1, 128)).word
    return bool(wanted) and git.run("hash-object", "--", name, ok=(0, 128)).word == wanted


def _unmerged(git: Git) -> list[str]:
    """Return the files in a checkout that are in conflict."""
    return sorted({readable(item.partition(b"\t")[2]) for item in git.run("ls-files", "-u", "-z").items})


def _both(first: object, second: str) -> str:
    """Say one thing and another, as far as there are two."""
    if first and second:
        return words("git.and", first=first, second=second)
    return second or as_text(first)


def _in_the_way(path: str, why: str, files: list[str] | None = None) -> ConflictError:
    names = files or []
    more = f" (+{len(names) - _NAMED_FILES})" if len(names) > _NAMED_FILES else ""
    files_told = f"{', '.join(names[:_NAMED_FILES])}{more}"
    if why and names:
        detail = words("in_the_way.files", path=path, why=why, files=files_told)
    else:
        detail = words("in_the_way.at", path=path, why=why or files_told)
    return ConflictError(reason_code="CHECKOUT_IN_THE_WAY", detail=detail, path=path, files=names)
