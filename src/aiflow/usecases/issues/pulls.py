"""What a pull request of a run says (ISS-9): what it closes, what was done, how it is accepted; and why one is closed.

Whatever an agent or a program wrote is quoted and harmless: it mentions no one, and closes no other issue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.issues.marks import CommentMark, MarkKind
from aiflow.domain.issues.prose import harmless, quoted, readable_line
from aiflow.domain.issues.pulls import PullDraft, lack_of_pull
from aiflow.usecases.issues.comments import marked, steps_table
from aiflow.usecases.shapes.usage_words import use_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.issues.pulls import NoPull
    from aiflow.domain.issues.view import ClosePull
    from aiflow.domain.runs.run import Run
    from aiflow.messages import Texts

# GitHub takes 256; who merges with a squash has it as the commit's first line.
MOST_TITLE = 200
MOST_SUMMARY = 2_000


def pull_of(number: int, run: Run, texts: Texts) -> PullDraft | NoPull:
    """Write the pull request of a finished run, or say why it has none."""
    lack = lack_of_pull(run)
    if lack is not None:
        return lack
    title = harmless(readable_line(run.title))[:MOST_TITLE] or run.request_id
    used = use_of(run.usage, texts)
    parts = [
        f"Closes #{number}",
        texts("issue.pull.what", number=number, run_id=run.run_id),
        steps_table(run, texts),
        "\n\n".join(_summaries(run)),
        texts("report.used", used=used) if used else "",
        texts("issue.pull.how", number=number, request_id=run.request_id),
    ]
    mark = CommentMark(MarkKind.NOTE, f"pull:{run.run_id}", {"about": "pull", "run_id": run.run_id})
    return PullDraft(run.place.branch, run.place.base_branch, title, marked(parts, mark))


def closing_comment(deed: ClosePull, run: Run | None, texts: Texts) -> str:
    """Write why a pull request is closed."""
    commit = (run.accepted_as or "")[:12] if run is not None else ""
    base = run.place.base_branch if run is not None else ""
    key = "accepted_as" if deed.why == "accepted" and commit else deed.why
    told = texts(f"issue.pull.{key}", url=deed.url, base=base, commit=commit)
    mark = CommentMark(MarkKind.NOTE, f"pull-closed:{deed.run_id}", {"about": deed.why, "run_id": deed.run_id})
    return marked([told], mark)


def _summaries(run: Run) -> Iterator[str]:
    """Yield what the agent said about each step, in a quote."""
    for step in run.plan:
        work = run.steps.get(step.id)
        if work is not None and work.summary:
            yield f"**{step.id}**\n{quoted(work.summary, MOST_SUMMARY)}"
