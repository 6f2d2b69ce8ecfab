"""Prompts (AGT-1): what an agent gets to read, composed of the texts in `prompts/` and the call.

Everything that somebody wrote is between tags that carry a mark of this run, so that no text can pretend to end.
Nothing is repeated: a session that continues gets only what is new.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.means import Means, guidance_in
from aiflow.domain.agents.answer_schema import SCHEMAS
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.diff_text import capped_diff
from aiflow.domain.agents.former import MOST_SHOWN
from aiflow.domain.agents.plan import WHOLE, one_line
from aiflow.domain.untrusted.calls import SENT_BACK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.domain.agents.call import AgentCall, Feedback
    from aiflow.domain.agents.former import FormerStep
    from aiflow.domain.agents.plan import PlanStep

FOLDER = Path(__file__).parents[3] / "prompts"
# How much of a step's change is shown, and of all steps' changes together.
MAX_CHANGES, MAX_WHOLE = 200_000, 100_000
MAX_SUMMARY = 600
SHORT_SECONDS = 600
_FAILED_TESTS = frozenset({"UNIT_TEST_FAILED", "E2E_TEST_FAILED", "TEST_TIMEOUT"})
_PART = re.compile(r"^=== (\S+)\n", re.MULTILINE)


def prompt_for(call: AgentCall, means: Means = Means(), *, goes_on: bool = False) -> str:  # noqa: B008
    """Write the whole prompt of a call, or only what is new to a session that continues."""
    parts = (*_new(call), *_again(means)) if goes_on else (*_all(call, means), _form(call.role, means))
    return "\n\n".join(parts) + "\n"


def mark_of(call: AgentCall) -> str:
    """Return the mark of this run's tags; the author of a request cannot know it."""
    return hashlib.sha256(call.run_id.encode()).hexdigest()[:8]


def _all(call: AgentCall, means: Means) -> Iterator[str]:
    yield _text(call, "head")
    yield _text(call, call.role.value)
    yield _limits(call, means)
    if names := guidance_in(call.cwd, means.reads):
        yield part("guidance", names=", ".join(f"`{name}`" for name in names))
    yield _data(call, "request", _request(call), id=call.brief.id)
    yield from _former(call)
    if len(call.plan) > 1 and call.role is not Role.PLANNER:
        yield f"{part('plan')}\n\n" + _data(call, "plan", "\n".join(_plan_line(call, step) for step in call.plan))
    if call.step is not None:
        yield part("step.whole") if call.step.instructions == WHOLE else _step(call, call.step)
    yield from _told(call)
    yield from _work(call)
    yield from _whole(call)


def _new(call: AgentCall) -> Iterator[str]:
    yield _text(call, "again")
    yield from _told(call)
    yield from _work(call)
    if call.role is Role.QA and call.is_at_the_end:
        yield part("whole.again") + (f" {part('whole.again.criteria')}" if call.criteria else "")


def _request(call: AgentCall) -> str:
    """Return the request with its title once: most bodies begin with it as their heading."""
    title, body = call.brief.title.strip(), call.brief.body.strip()
    first = body.partition("\n")[0]
    return body if first.startswith("#") and first.strip("# \t") == title.strip("# ") else f"{title}\n\n{body}".strip()


def _former(call: AgentCall) -> Iterator[str]:
    """Describe the run before (REQ-6a, RUN-6): what it planned, did and changed, and whether the branch has that.

    Of the reviewers only the last one has a use for it, and has the whole change anyway.
    """
    former, is_reviewer = call.former, call.role is Role.QA
    if former is None or (is_reviewer and not call.is_at_the_end):
        return
    is_continued = call.continues == former.run_id
    yield part("former.continued") if is_continued else part("former.left", reason=former.reason_code)
    if call.continues and not is_continued:
        yield part("former.left.also")
    if is_continued and call.role is Role.PLANNER:
        yield part("former.continued.planner")
    if former.steps:
        plan = "\n".join(_former_line(call, step) for step in former.steps)
        yield f"{part('former.plan')}\n\n" + _data(call, "former-plan", plan)
    if call.former_diff and not is_reviewer and (diff := call.former_diff()):
        command = f"git diff {former.base[:12]} {former.tip[:12]}"
        yield f"{part('former.diff', command=command)}\n\n" + _diff(call, diff, MOST_SHOWN)


def _former_line(call: AgentCall, step: FormerStep) -> str:
    """Write a step of the former plan."""
    title = part("step.request") if _is_the_requests(call, step.title) else step.title
    return _step_line(step.id, title, _done(step.commit) if step.is_done else "not done", step.summary)


def _plan_line(call: AgentCall, step: PlanStep) -> str:
    """Write a step of the plan: how far it is, and what its implementer said once done; this one's title follows."""
    if call.step is not None and step.id == call.step.id:
        return f"{step.id} (this step)"
    title = part("step.request") if step.instructions == WHOLE else step.title
    done = call.done.get(step.id)
    return (
        f"{step.id} {title} (to do)" if done is None else _step_line(step.id, title, _done(done.commit), done.summary)
    )


def _done(commit: str | None) -> str:
    return f"done, commit {commit[:12]}" if commit else "done, nothing was changed"


def _step_line(step_id: str, title: str, state: str, summary: str) -> str:
    told = summary if len(summary) <= MAX_SUMMARY else f"{summary[:MAX_SUMMARY]}…"
    return "\n   ".join([f"{step_id} {title} ({state})", *told.splitlines()])


def _told(call: AgentCall) -> Iterator[str]:
    """Say what a person answered, and what failed before."""
    if call.answers:
        said = (f"Question: {question}\nAnswer: {answer}" for question, answer in call.answers)
        yield f"{part('answers')}\n\n" + _data(call, "answers", "\n\n".join(said))
    if call.feedback:
        lead = part(f"feedback.{call.role.value}")
        if call.role is Role.IMPLEMENTER and any(one.reason_code in _FAILED_TESTS for one in call.feedback):
            lead = f"{lead} {part('feedback.tests')}"
        if call.role is Role.IMPLEMENTER and any(one.reason_code == "QA_REJECTED" for one in call.feedback):
            lead = f"{lead} {part('feedback.findings')}"
        told = dict.fromkeys(_one_told(call, one) for one in call.feedback)
        yield f"{lead}\n\n" + _data(call, "feedback", "\n\n".join(told))


def _one_told(call: AgentCall, told: Feedback) -> str:
    """Write one failure, without what the request already says and what a reviewer has no use for."""
    if told.reason_code == SENT_BACK and _is_in(told.summary, call.brief.body):
        return f"{told.reason_code}: {part('feedback.in_request')}"
    detail = "" if call.role is Role.QA else told.detail
    return "\n".join(filter(None, (f"{told.reason_code}: {told.summary}", detail)))


def _is_in(comment: str, body: str) -> bool:
    """Return whether a comment is in a request's text, in separate lines."""
    said, text = ("\n".join(line.rstrip() for line in each.strip().splitlines()) for each in (comment, body))
    return bool(said) and f"\n{said}\n" in f"\n{text}\n"


def _work(call: AgentCall) -> Iterator[str]:
    """Show a reviewer what was done: in the engineer's words, by the tests, and the change itself."""
    if call.role is not Role.QA:
        return
    yield f"{part('summary')}\n\n" + _data(call, "summary", call.summary or "(nothing)")
    if call.tests:
        yield f"{part('test_output')}\n\n" + _data(call, "tests", call.test_output or "(no longer at hand)")
    yield f"{part('change')}\n\n" + _diff(call, call.changes(), MAX_CHANGES)


def _whole(call: AgentCall) -> Iterator[str]:
    """Ask the last review for the whole request (RUN-18): its criteria one by one, and what all steps changed."""
    if call.role is not Role.QA or not call.is_at_the_end:
        return
    criteria = "\n".join(f"{number}. {each}" for number, each in enumerate(call.criteria, 1))
    yield part("whole")
    yield part("whole.criteria" if criteria else "whole.body")
    if criteria:
        yield _data(call, "criteria", criteria)
    if call.whole is not None:
        yield f"{part('whole.change')}\n\n" + _diff(call, call.whole(), MAX_WHOLE)


def _diff(call: AgentCall, text: str, most: int) -> str:
    return _data(call, "diff", capped_diff(text, most).rstrip("\n") or "(nothing was changed)")


def _limits(call: AgentCall, means: Means) -> str:
    """Say what the agent cannot do here, before it tries."""
    lines = [part("limits") + "\n"]
    if call.role is Role.IMPLEMENTER:
        how = "confined" if means.is_confined else "open"
        caches = part("limits.caches") if means.has_caches else ""
        more = "".join(f", in `{path}`" for path in means.writable) + (f" {caches}" if caches else "")
        lines += [part(f"limits.{how}", more=more), part(f"limits.git.{how}")]
        lines += [part(means.also)] if means.also else []
    elif not means.has_commands:
        lines.append(part("limits.no_commands"))
    elif not means.is_confined:
        lines.append(part("limits.commands.open"))
    else:
        lines.append(part("limits.commands" if means.has_scratch else "limits.commands.reading"))
    if means.has_commands:
        lines += [] if means.has_network else [part("limits.no_network")]
        lines.append(part("limits.background"))
    if means.times:
        minutes, idle = map(_minutes, means.times)
        lines.append(part("limits.time", minutes=minutes, idle=idle))
    return "\n".join(lines)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.2g}" if seconds < SHORT_SECONDS else f"{seconds / 60:.0f}"


def _text(call: AgentCall, name: str) -> str:
    """Fill one of the texts in."""
    files, lines = call.step_limits
    commands = ", ".join(f"{kind}: `{command}`" for kind, command in call.tests.items())
    tests = f"tests.{call.role.value}" + ("" if commands else ".none")
    facts = {
        "role": part(f"role.{call.role.value}"),
        "mark": mark_of(call),
        "step_id": call.step.id if call.step else "",
        "step_files": str(files),
        "step_lines": str(lines),
        "tests": part(tests, commands=commands),
        "paths": f"{part('paths')}\n" if call.step and call.step.target_paths else "",
        "requests_dir": call.requests_dir,
    }
    return _filled(_read(name), facts)


def part(name: str, **facts: str) -> str:
    """Return one of the pieces in `parts.md`, filled in."""
    return _filled(_parts()[name], facts)


@functools.cache
def _parts() -> Mapping[str, str]:
    _, *found = _PART.split(_read("parts"))
    return {name: text.strip() for name, text in zip(found[::2], found[1::2], strict=True)}


@functools.cache
def _read(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()


def _filled(text: str, facts: Mapping[str, str]) -> str:
    for key, value in facts.items():
        text = text.replace(f"{{{key}}}", value)
    return text


def _data(call: AgentCall, kind: str, text: str, **attributes: str) -> str:
    """Put somebody's text between tags; our own mark inside it would be no accident."""
    mark = mark_of(call)
    more = "".join(f" {name}={json.dumps(value, ensure_ascii=False)}" for name, value in attributes.items())
    body = re.sub(mark, "…", text, flags=re.IGNORECASE)
    return f'<data-{mark} kind="{kind}"{more}>\n{body}\n</data-{mark}>'


def _step(call: AgentCall, step: PlanStep) -> str:
    """Write the step that the call is about; a title that is the request's is there already."""
    head = step.id if _is_the_requests(call, step.title) else f"{step.id} {step.title}"
    paths = "\n".join(("Paths it is about:", *(f"- {path}" for path in step.target_paths))) if step.target_paths else ""
    text = "\n\n".join(filter(None, (head, step.instructions, paths)))
    return f"{part('step')}\n\n" + _data(call, "step", text, id=step.id)


def _is_the_requests(call: AgentCall, title: str) -> bool:
    return title.strip("# ") == one_line(call.brief.title).strip("# ")


def _form(role: Role, means: Means) -> str:
    if means.has_schema:
        return part("answer.form")
    return part("answer.schema", schema=json.dumps(SCHEMAS[role], ensure_ascii=False))


def _again(means: Means) -> Iterator[str]:
    if not means.has_schema:
        yield part("answer.again")
