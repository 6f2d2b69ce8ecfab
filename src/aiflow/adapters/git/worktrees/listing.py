"""Asking git about all worktrees while others come and go (GIT-1): what another git does there is over in a moment.

`git worktree` reads the entry of every worktree, and gives up where another git is just making or removing one: it
finds files that are empty or gone. That happens if you accept two runs at once.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, TypeVar

from aiflow.errors import EnvironmentProblemError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.adapters.git.git_cli import Done, Git

T = TypeVar("T")

# Such an entry lasts for less than a millisecond; what lasts longer is broken, and git's own words show where.
_PATIENCE_SECONDS = 5.0
_IN_BETWEEN = re.compile(
    r"failed to read '?\S*worktrees/.*(?:commondir|locked)'?: (?:Success|No such file)"
    r"|Invalid path '.*/worktrees/.*': No such file"
    r"|could not create directory of '.*worktrees/.*': No such file"
)


def list_worktrees(git: Git) -> Done:
    """Ask git for every worktree it knows, there or not."""
    return patiently(lambda: git.run("worktree", "list", "--porcelain", "-z"))


def patiently(call: Callable[[], T]) -> T:
    """Do what calls `git worktree`, again and again while it meets a worktree that is just being made or removed."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return call()
        except EnvironmentProblemError as error:
            if not _IN_BETWEEN.search(str(error.context.get("problem"))) or time.monotonic() > until:
                raise
        time.sleep(0.05)
