"""What a run did, in words (RUN-19): Markdown for `report.md`, which terminal and page show, and for an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.runs.report import report_of
from aiflow.settings import ROLES
from aiflow.usecases.shapes.usage_words import clock_text, money, short_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from aiflow.domain.agents.judging import Criterion
    from aiflow.domain.agents.usage import Usage
    from aiflow.domain.runs.follow_ups import FollowUps
    from aiflow.domain.runs.report import RunReport, StepReport
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.step_record import EndedTest, Footprint, Review
    from aiflow.messages import Texts

FILES_SHOWN = 20


class Quoting(NamedTuple):
    """How the words of agents are written: in one line, and as a block."""

    line: Callable[[str], str]
    block: Callable[[str], str]


PLAIN = Quoting(
    lambda text: " ".join(text.split()),
    lambda text: "\n".join(f"> {line}".rstrip() for line in text.splitlines()),
)


def report_words(run: Run, texts: Texts, quoting: Quoting = PLAIN) -> str:
    """Write what was done in each step of a run, and what each role used."""
    told = report_of(run)
    steps = (line for step in told.steps for line in step_words(step, texts, quoting))
    return "\n".join([*steps, *criteria_section(told, texts, quoting), *roles_table(told, texts)])


def criteria_section(told: RunReport, texts: Texts, quoting: Quoting = PLAIN) -> list[str]:
    """Name each acceptance criterion and whether it is met (RUN-18), if the request has any that were judged."""
    lines = [_criterion(each, texts, quoting) for each in told.criteria]
    return [f"### {texts('report.criteria')}", "", *lines, ""] if lines else []


_MET = {True: "met", False: "not_met", None: "unjudged"}


def _criterion(each: Criterion, texts: Texts, quoting: Quoting) -> str:
    note = f" ({quoting.line(each.note)})" if each.note else ""
    return (
        "- " + texts(f"report.criterion.{_MET[each.is_met]}", number=each.number, text=quoting.line(each.text)) + note
    )


def step_words(step: StepReport, texts: Texts, quoting: Quoting = PLAIN) -> list[str]:
    """Write what was done in a step: nothing if nothing was done."""
    record = step.record
    if not (step.summary or step.test_runs or record.footprint.total or record.reviews):
        return []
    lines = [*_changed(record.footprint, texts, quoting), *_tested(step, texts)]
    for number, review in enumerate(record.reviews, 1):
        lines += _reviewed(number, review, texts, quoting)
    summary = [quoting.block(step.summary), ""] if step.summary else []
    return [f"### {step.step_id} {quoting.line(step.title)}", "", *summary, *([*lines, ""] if lines else [])]


def found_section(lines: Sequence[str], texts: Texts) -> list[str]:
    """Write what was found on the way, below its heading, if anything was."""
    return [f"### {texts('report.found')}", "", *lines] if lines else []


def found_lines(found: FollowUps, texts: Texts, quoting: Quoting = PLAIN) -> Iterator[str]:
    """Name each follow-up with the request that it is (REQ-10), and how many more there were."""
    for each in found.kept:
        state = "open" if each.request_id is None else "known" if each.is_known else "draft"
        told = texts(f"report.found.{state}", who=" ".join(filter(None, (each.role, each.step_id))))
        yield "- " + " ".join(filter(None, (each.request_id, quoting.line(each.title), told)))
    if found.left_out:
        yield "- " + texts("report.found.more", count=found.left_out, most=len(found.kept))


def _changed(changed: Footprint, texts: Texts, quoting: Quoting) -> Iterator[str]:
    """Name the files of a step with their lines; a binary file has none."""
    if not changed.total:
        return
    yield "- " + texts("report.changed", files=changed.total, added=changed.added, deleted=changed.deleted)
    for file in changed.files[:FILES_SHOWN]:
        lines = f" +{file.added} −{file.deleted}" if file.added or file.deleted else ""
        yield f"  - `{quoting.line(file.path).replace('`', chr(39))}`{lines}"
    if (more := changed.total - FILES_SHOWN) > 0:
        yield f"  - {texts('report.files_more', count=more)}"


def _tested(step: StepReport, texts: Texts) -> Iterator[str]:
    """Say how the tests of a step ended; of a run from before that was kept it is not known."""
    results = [_result(each, texts) for each in step.record.tests]
    if results:
        yield "- " + texts("report.tests", results=texts("auto.limit.between").join(results))
    elif step.is_done and not step.test_runs:
        yield "- " + texts("report.tests.none")


def _result(test: EndedTest, texts: Texts) -> str:
    key = "report.test.passed" if test.has_passed else "report.test.failed"
    return texts(key, kind=test.kind, time=clock_text(test.seconds), code=test.reason_code or "")


def _reviewed(number: int, review: Review, texts: Texts, quoting: Quoting) -> Iterator[str]:
    yield "- " + texts(f"report.review.{'passed' if review.is_passed else 'failed'}", number=number)
    for finding in review.findings:
        yield "\n".join(f"  {line}" for line in quoting.block(f"- {finding}").splitlines())


def roles_table(told: RunReport, texts: Texts) -> list[str]:
    """Write what each role used, and all of them together; nothing of a run in which nothing was used."""
    if not told.roles:
        return []
    columns = [texts(f"report.column.{name}") for name in ("role", "calls", "tokens", "cost", "time")]
    rows = [_use_row(role_name(each.role, each.usage, texts), each.usage) for each in told.roles]
    total = [_use_row(texts("report.role.all"), told.usage)] if len(rows) > 1 else []
    return ["| " + " | ".join(columns) + " |", "|---" + "|---:" * (len(columns) - 1) + "|", *rows, *total]


def role_name(role: str | None, usage: Usage, texts: Texts) -> str:
    """Name a role; what no agent used is the time of tests and set-up."""
    if role is None:
        return texts("report.role.untold" if usage.calls or usage.tokens or usage.cost_usd else "report.role.rest")
    return texts(f"role.{role}") if role in ROLES else role


def _use_row(name: str, usage: Usage) -> str:
    return "| " + " | ".join((name, *use_cells(usage))) + " |"


def use_cells(usage: Usage) -> tuple[str, str, str, str]:
    """Write what was used as cells of a table: calls, tokens, cost, time; what is nothing is empty."""
    return (
        str(usage.calls or ""),
        short_number(usage.tokens) if usage.tokens else "",
        money(usage.cost_usd) if usage.cost_usd else "",
        clock_text(usage.seconds),
    )
