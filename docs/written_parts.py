"""What is generated within pages that people write: reasons and commands, from the catalogue.

A part is between `<!-- written: NAME -->` and `<!-- /written -->`; docs/generate.py writes it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from aiflow.domain import reasons
from aiflow.messages.commands import command_line
from page_parts import NONE, Edition, code, prose, table

PART = re.compile(r"^(<!-- written: (\w+) -->\n).*?(?=^<!-- /written -->$)", re.MULTILINE | re.DOTALL)
PAGES = ("concepts/runs.md", "guides/overnight.md")
# After which a run commonly stops, or waits; what to do about each is the catalogue's.
STOPS = (
    *("NEEDS_CLARIFICATION", "CANCELLED", "PROCESS_CRASHED", "DISK_FULL", "WORKTREE_DIRTY", "AUTO_CUT_OFF"),
    *("UNIT_TEST_FAILED", "QA_REJECTED", "AGENT_FAILED", "AGENT_TIMEOUT", "STEP_TOO_LARGE", "RETRY_LIMIT_EXCEEDED"),
    *("AWAITING_ACCEPTANCE", "NOTHING_CHANGED", "SETTINGS_CHANGED", "CONFLICT_TO_REVIEW", "CHECKOUT_IN_THE_WAY"),
    *("MERGE_CONFLICT", "MERGE_TESTS_FAILED", "RUN_LOST", "INTERNAL_ERROR"),
)
ENDS = (
    *("AUTO_NOTHING_RUNNABLE", "AUTO_NEEDS_INPUT_LIMIT", "AUTO_FAILED_LIMIT", "BASE_TESTS_FAILED", "DOCTOR_FAILED"),
    *("AUTO_RUNS_LIMIT", "AUTO_MINUTES_LIMIT", "AUTO_UNTIL_REACHED", "AUTO_COST_LIMIT", "AUTO_STOPPED_BY_PERSON"),
    "AUTO_CUT_OFF",
)
# What a person calls each next step.
WAYS = {
    reasons.WayOn.ANSWER: "answer",
    reasons.WayOn.RESUME: "resume",
    reasons.WayOn.RETRY_STEP: "redo the step",
    reasons.WayOn.REPLAN: "make a new plan",
    reasons.WayOn.ACCEPT: "accept",
    reasons.WayOn.UPDATE: "update from the base",
    reasons.WayOn.NEW_RUN: "start a new run",
}


def written_pages(docs: Path, editions: Iterable[Edition]) -> dict[str, str]:
    """Return the pages that have such parts, each part as it is today."""
    made: dict[str, str] = {}
    for edition in editions:
        for name in PAGES:
            path = str(Path(edition.folder).parent / name)
            made[path] = _written(edition, (docs / path).read_text("utf-8"))
    return made


def _written(edition: Edition, text: str) -> str:
    return PART.sub(lambda part: part[1] + PARTS[part[2]](edition), text)


def _ways(edition: Edition) -> str:
    """Write the next steps: after which reasons, and the command."""
    after = {way: [each for each in STOPS if reasons.CATALOGUE[each].way_on is way] for way in WAYS}
    rows = (
        [edition.say(f"way.{way}", words), edition.say("comma", ", ").join(map(_linked, after[way])), _command(way)]
        for way, words in WAYS.items()
    )
    return table(edition.headers("ways.after", "next step", "for example after", "command"), rows)


def _ends(edition: Edition) -> str:
    """Write why an auto-run ends, and what to do then."""
    return table(edition.headers("ends.headers", "reason", "what it shows", "first", "then"), _rows(ENDS, edition))


def _rows(codes: Iterable[str], edition: Edition) -> Iterable[list[str]]:
    for each in codes:
        title, _, actions = edition.texts.message(each, {})
        todo = [prose(advice.typed).replace("<request_id>", "REQUEST") for advice in actions]
        yield [_linked(each), prose(title), *[*todo, NONE, NONE][:2]]


def _linked(reason: str) -> str:
    return f"[{reason}](../reference/reason-codes.md#{reason.lower()})"


def _command(way: reasons.WayOn) -> str:
    return code(command_line(reasons.WAYS[way]).replace("<ID>", "REQUEST"))


PARTS: dict[str, Callable[[Edition], str]] = {"ways": _ways, "ends": _ends}
