"""Commits of request files in the user's own checkout (REQ-8): these files and nothing else, as `git commit --only`.

What a person has staged stays staged, what they have changed stays changed. Where a commit would get in their way (a
merge, a rebase, a detached HEAD), nothing is done, and the caller hears why.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from aiflow.adapters.git.git_files import GitCheckout, git_dir_of
from aiflow.errors import AiflowError
from aiflow.messages.details import as_text, words

if TYPE_CHECKING:
    from aiflow.adapters.git.git_cli import Git

# Another git holds the index, or a ref, for a moment; one that holds it longer is a person's.
_PATIENCE_SECONDS = 3.0
_LOCKED = ("index.lock", "cannot lock ref")
_LITERAL = "--literal-pathspecs"


def commit_file(git: Git, path: str, message: str) -> str | None:
    """Commit one file on the checked-out branch; return why it was left, or None if it is in (or ignored)."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            why = _why_not(git)
            if why is None:
                _commit(git, path, message)
        except AiflowError as error:
            problem = as_text(error.context.get("problem") or error.reason_code)
            if not any(saying in problem for saying in _LOCKED) or time.monotonic() > until:
                return problem
            time.sleep(0.05)
        else:
            return why


def _why_not(git: Git) -> str | None:
    """Return what is in progress in the checkout that a commit would disturb."""
    git_dir = git_dir_of(git.cwd) or git.run("rev-parse", "--absolute-git-dir").word
    checkout = GitCheckout(git.cwd, git_dir, git_dir)
    if under_way := checkout.under_way():
        return words("commit_requests.under_way", names=", ".join(under_way))
    if git.run("symbolic-ref", "-q", "HEAD", ok=(0, 1)).code:
        return words("commit_requests.detached")
    return None


def _is_ignored(git: Git, path: str) -> bool:
    return bool(git.run("check-ignore", "-z", "--stdin", stdin=os.fsencode(path) + b"\0", ok=(0, 1)).items)


def _commit(git: Git, path: str, message: str) -> None:
    is_new = git.run(_LITERAL, "ls-files", "--error-unmatch", "--", path, ok=(0, 1)).code == 1
    if is_new and _is_ignored(git, path):
        return  # a person keeps requests out of git
    if not is_new and git.run(_LITERAL, "diff", "--quiet", "HEAD", "--", path, ok=(0, 1, 128)).code == 0:
        return  # somebody has committed it meanwhile
    if is_new:
        git.run(_LITERAL, "add", "--intent-to-add", "--", path)
    try:
        options = ("--quiet", "--only", "--cleanup=verbatim", *(() if git.hooks else ("--no-verify",)))
        git.run(_LITERAL, "commit", *options, "-F", "-", "--", path, stdin=message.encode("utf-8", "replace"))
    except AiflowError:
        if is_new:  # the index is again as the person left it
            git.run(_LITERAL, "rm", "--quiet", "--cached", "--", path, ok=(0, 1, 128))
        raise
