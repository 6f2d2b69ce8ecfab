"""What writing to issues needs besides GitHub (ISS-3, ISS-9): the words of comments, and this checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.issues.headers import RunHeader
    from aiflow.domain.issues.pulls import NoPull, PullDraft
    from aiflow.domain.issues.view import ClosePull, Post
    from aiflow.domain.runs.run import Run
    from aiflow.ports import Journal
    from aiflow.ports.issues import IssueHost


class IssueWords(Protocol):
    """The words of comments, in the language of the checkout."""

    def header(self, header: RunHeader) -> str:
        """Write a Run Header."""

    def progress(self, run: Run) -> str:
        """Write how a run stands."""

    def comment(self, number: int, post: Post) -> str:
        """Write any other comment."""

    def answer(self, text: str) -> str:
        """Write what a person answered elsewhere."""

    def pull(self, number: int, run_id: str) -> PullDraft | NoPull:
        """Write the pull request of a run, or say why it has none."""

    def pull_closed(self, number: int, deed: ClosePull) -> str:
        """Write why a pull request is closed, as a comment on it."""


def no_run(_request_id: str, _run_id: str) -> Run | None:
    """Know of no run."""
    return None


def no_labels(_host: IssueHost) -> None:
    """Make no labels."""


class Here(NamedTuple):
    """This checkout, as far as issues see it: its journal, its machine's name, asking a run of it to end, its runs.

    `make_labels` makes the labels that the repository does not have yet.
    """

    journal: Journal
    runner: str
    ask_cancel: Callable[[str], None]
    load_run: Callable[[str, str], Run | None] = no_run
    make_labels: Callable[[IssueHost], object] = no_labels
