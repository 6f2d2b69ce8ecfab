"""A run's plan (AGT-3): its steps, and what a planner's answer must be to become one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from aiflow.domain.details import detail
from aiflow.domain.request import UNCLEAN

MAX_STEPS = 99
MAX_TEXT = 20_000
TEST_KINDS = ("unit", "e2e")
PLANNING_VERSION = "1.0"
# The only step of a run without a planner: its instructions are the request.
WHOLE = "Do all of the request: this is its only step."
_STEP_ID = re.compile(r"S[0-9]{2}")


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One slice of the work; `tests` None means every test command that is configured."""

    id: str
    title: str
    instructions: str = ""
    target_paths: tuple[str, ...] = ()
    tests: tuple[str, ...] | None = None

    @property
    def number(self) -> int:
        """The number of its log: S03 is 3."""
        return int(self.id[1:])


class FlawError(Exception):
    """An answer does not have its shape: where, and what is wrong there (the texts `flaw.…`)."""

    def __init__(self, where: str, problem: str, **facts: object) -> None:
        self.flaw = detail(f"flaw.{problem}", where=where, **facts)
        super().__init__(where, problem)


def read_plan(raw: object) -> tuple[PlanStep, ...]:
    """Read `{"steps": […]}`, or raise with the first flaw."""
    if not isinstance(raw, dict):
        raise FlawError("answer", "object")
    steps = raw.get("steps")
    if not isinstance(steps, list) or not steps:
        raise FlawError("steps", "steps")
    if len(steps) > MAX_STEPS:
        raise FlawError("steps", "too_many", count=len(steps), limit=MAX_STEPS)
    plan = tuple(_read_step(f"steps[{number}]", step) for number, step in enumerate(steps))
    seen: set[str] = set()
    for number, step in enumerate(plan):
        if step.id in seen:
            raise FlawError(f"steps[{number}].id", "twice", step_id=step.id)
        seen.add(step.id)
    return plan


def plan_shape(plan: tuple[PlanStep, ...]) -> list[dict[str, object]]:
    """Write a plan the way a planner answers it."""
    return [
        {
            "id": step.id,
            "title": step.title,
            "instructions": step.instructions,
            "targets": {"paths": list(step.target_paths)},
            **({} if step.tests is None else {"tests": list(step.tests)}),
        }
        for step in plan
    ]


def after(plan: tuple[PlanStep, ...], steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    """Append steps to those that a run has already, with new numbers."""
    last = max((step.number for step in plan), default=0)
    shift = last if any(step.number <= last for step in steps) else 0
    return (*plan, *(replace(step, id=f"S{step.number + shift:02}") for step in steps))


def whole_request(title: str) -> tuple[PlanStep, ...]:
    """Make the plan of a run without a planner (RUN-18): one step, the request itself."""
    return (PlanStep("S01", one_line(title) or "The request", WHOLE),)


def merging_step(plan: tuple[PlanStep, ...], base_branch: str, conflicts: tuple[str, ...]) -> PlanStep | None:
    """Make the step that merges the base branch in (GIT-3); None if the plan has no number left for it."""
    number = max((step.number for step in plan), default=0) + 1
    if number > MAX_STEPS:
        return None
    known = tuple(path for path in conflicts if is_usable_path(path))
    return PlanStep(f"S{number:02}", f"Merge {base_branch}", _how_to_merge(base_branch, conflicts), known)


def _how_to_merge(base_branch: str, conflicts: tuple[str, ...]) -> str:
    """Say what is left to do where the base was merged in; without conflicts only failed tests call an implementer."""
    if conflicts:
        files = "".join(f"\n- {path}" for path in conflicts)
        return (
            f"{base_branch} was merged into this branch. Resolve every conflict so that both sides' intentions hold, "
            f"and leave no conflict marker behind. Files with conflicts:{files}"
        )
    return (
        f"{base_branch} was merged into this branch without conflicts. If tests fail now, make them pass so that both "
        f"sides' intentions hold: keep what this branch does and what {base_branch} does."
    )


def is_usable_path(path: str) -> bool:
    """Return whether a plan may name this path."""
    try:
        _check_path("", path)
    except FlawError:
        return False
    return True


def _read_step(where: str, raw: object) -> PlanStep:
    if not isinstance(raw, dict):
        raise FlawError(where, "object")
    step_id = raw.get("id")
    if not isinstance(step_id, str) or not _STEP_ID.fullmatch(step_id) or step_id == "S00":
        raise FlawError(f"{where}.id", "step_id")
    title = _read_line(f"{where}.title", raw.get("title"))
    instructions = raw.get("instructions", "")
    if not isinstance(instructions, str):
        raise FlawError(f"{where}.instructions", "text")
    targets = raw.get("targets", {})
    if not isinstance(targets, dict):
        raise FlawError(f"{where}.targets", "object")
    paths = read_texts(f"{where}.targets.paths", targets.get("paths", []))
    for path in paths:
        _check_path(f"{where}.targets.paths", path)
    return PlanStep(step_id, title, whole(instructions), paths, _read_tests(f"{where}.tests", raw.get("tests")))


def _read_tests(where: str, raw: object) -> tuple[str, ...] | None:
    if raw is None:
        return None
    tests = read_texts(where, raw)
    unknown = [test for test in tests if test not in TEST_KINDS]
    if unknown:
        raise FlawError(where, "test", test=repr(unknown[0]), known=", ".join(TEST_KINDS))
    return tuple(dict.fromkeys(tests))


def _check_path(where: str, path: str) -> None:
    """Refuse a path that leads out of the repository or into git's own files."""
    parts = path.replace("\\", "/").split("/")
    if path.startswith(("/", "~", "\\")) or ".." in parts or re.match(r"[A-Za-z]:", path) or "\0" in path:
        raise FlawError(where, "outside", path=repr(path))
    if ".git" in (part.lower() for part in parts):
        raise FlawError(where, "gits_own", path=repr(path))


def _read_line(where: str, raw: object) -> str:
    """Read a text as one line: it becomes a commit's subject, a row of a table, a line on a terminal."""
    return read_text(where, one_line(raw) if isinstance(raw, str) else raw)


def one_line(text: str) -> str:
    """Make one line of a text, without what no line may hold."""
    return re.sub(" +", " ", UNCLEAN.sub(" ", text)).strip()


def read_text(where: str, raw: object) -> str:
    """Read a text of a plan, which may not be empty."""
    if not isinstance(raw, str) or not raw.strip():
        raise FlawError(where, "not_empty")
    if len(raw) > MAX_TEXT:
        raise FlawError(where, "too_long", limit=MAX_TEXT)
    return whole(raw.strip())


def whole(text: str) -> str:
    """Replace halves of characters, which JSON can hold but no file and no log."""
    return text.encode("utf-8", "replace").decode("utf-8")


def read_texts(where: str, raw: object) -> tuple[str, ...]:
    """Read a list of texts."""
    if not isinstance(raw, list) or not all(isinstance(item, str) for item in raw):
        raise FlawError(where, "texts")
    return tuple(map(whole, raw))
