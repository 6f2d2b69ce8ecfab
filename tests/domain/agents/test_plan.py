"""Plans (AGT-3): what a planner's answer must be to become one, and what is wrong with it if not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.domain.agents.plan import MAX_STEPS, MAX_TEXT, FlawError, PlanStep, plan_shape, read_plan
from aiflow.messages.details import ENGLISH

STEP: dict[str, Any] = {"id": "S01", "title": "First"}


def plan_of(*steps: Any) -> dict[str, Any]:
    return {"steps": list(steps)}


def flaw_of(raw: object) -> str:
    with pytest.raises(FlawError) as refused:
        read_plan(raw)
    return ENGLISH.say(refused.value.flaw)


@pytest.mark.spec("AGT-3")
def test_a_plan_is_read_with_everything_in_it() -> None:
    full = {
        "id": "S01",
        "title": " First ",
        "instructions": "Do it.\n\nWell.",
        "targets": {"paths": ["src/a.py", "docs/", "*.md", ""]},
        "tests": ["e2e", "unit", "e2e"],
        "why": "unknown keys are the planner's own",
    }
    first, second = read_plan({**plan_of(full, {"id": "S02", "title": "Second"}), "notes": []})
    paths = ("src/a.py", "docs/", "*.md", "")
    assert first == PlanStep("S01", "First", "Do it.\n\nWell.", paths, ("e2e", "unit"))
    assert second == PlanStep("S02", "Second")
    assert (first.number, second.number) == (1, 2)


@pytest.mark.spec("AGT-3")
def test_no_tests_named_is_not_the_same_as_none_wanted() -> None:
    without, empty, null = read_plan(
        plan_of(STEP, {"id": "S02", "title": "x", "tests": []}, {"id": "S03", "title": "x", "tests": None})
    )
    assert (without.tests, empty.tests, null.tests) == (None, (), None)


@pytest.mark.spec("AGT-3")
def test_steps_are_done_in_the_order_of_the_list() -> None:
    ids = ["S07", "S02", "S99"]
    assert [step.id for step in read_plan(plan_of(*({"id": i, "title": "x"} for i in ids)))] == ids


IDS = (None, 1, "", "S1", "S001", "S00", "s01", "S-1", "S01 ", "S01\n", "S0１", "S００", "X01", ["S01"])
BAD_FIELDS: dict[str, tuple[object, ...]] = {
    "id": IDS,
    "title": (None, "", " \n", 5, [], "x" * 20_001),
    "instructions": (None, 5, ["x"], {}),
    "targets": (None, [], "src", 5),
    "tests": ("unit", {}, 5, True, [5], ["lint"], ["unit", "UNIT"], [None], [["unit"]]),
}
NO_OBJECTS: tuple[object, ...] = (None, [], "x", 5, True)
BAD_PATHS: tuple[object, ...] = (None, "src", {}, [5], [None], [["src"]])
FLAWS: list[tuple[object, str]] = [
    *((raw, "answer") for raw in NO_OBJECTS),
    *(({"steps": raw}, "steps") for raw in (*NO_OBJECTS, {})),
    *((plan_of(STEP, raw), "steps[1]") for raw in NO_OBJECTS),
    ({}, "steps"),
    *((plan_of(STEP | {key: bad}), f"steps[0].{key}") for key, values in BAD_FIELDS.items() for bad in values),
    *((plan_of(STEP | {"targets": {"paths": paths}}), "steps[0].targets.paths") for paths in BAD_PATHS),
    (plan_of({"title": "x"}), "steps[0].id"),
    (plan_of({"id": "S01"}), "steps[0].title"),
    (plan_of(STEP, {"id": "S02", "title": "x"}, {"id": "S02", "title": "y"}), "steps[2].id"),
]


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize(("raw", "where"), FLAWS)
def test_the_first_flaw_is_named_with_its_place(raw: object, where: str) -> None:
    assert flaw_of(raw).startswith(f"{where}: ")


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "/", "..", "../x", "a/../../x", "a/..", "./../x", "~", "~/x", "~root/x"),
        *("\\\\server\\x", "\\x", "a\\..\\x", "C:\\x", "c:x", "C:/x", "a\0b"),
        *(".git", ".git/hooks/pre-commit", "a/.git/config", "a\\.git", "./.git", ".GIT/config"),
    ],
)
def test_no_path_leads_out_of_the_repository_or_into_gits_own_files(path: str) -> None:
    flaw = flaw_of(plan_of(STEP | {"targets": {"paths": ["src", path]}}))
    assert flaw.startswith(f"steps[0].targets.paths: {path!r} is ")


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize(
    "path", ["a..b", "...", ".gitignore", ".github/x", "a.git", "日本語/ä", "a b", "-x", "src/**/*.py"]
)
def test_a_path_that_only_looks_strange_is_fine(path: str) -> None:
    [step] = read_plan(plan_of(STEP | {"targets": {"paths": [path]}}))
    assert step.target_paths == (path,)


@pytest.mark.spec("AGT-3")
def test_a_plan_has_at_most_99_steps() -> None:
    steps = [{"id": f"S{number:02d}", "title": "x"} for number in range(1, 101)]
    assert len(read_plan(plan_of(*steps[:MAX_STEPS]))) == MAX_STEPS == 99
    assert flaw_of(plan_of(*steps)) == "steps: has 100 steps, the limit is 99"
    assert flaw_of(plan_of(*[STEP] * 200)).startswith("steps: has 200")


@pytest.mark.spec("AGT-3", "GIT-2")
@pytest.mark.parametrize(
    ("title", "line"),
    [
        ("Add\na line", "Add a line"),
        ("\x1b[31mred\x1b[0m\ttab", "[31mred [0m tab"),
        ("a\0b", "a b"),
        ("half \ud800 a character", "half a character"),
        ("turned \u202eround", "turned round"),
        ("全角　空白 👩‍💻", "全角　空白 👩‍💻"),
    ],
)
def test_a_title_is_one_clean_line(title: str, line: str) -> None:
    # It becomes the first line of a commit, a row of a table and a line on a terminal.
    assert read_plan(plan_of(STEP | {"title": title}))[0].title == line


@pytest.mark.spec("AGT-3")
def test_a_title_of_nothing_but_control_characters_says_nothing() -> None:
    assert flaw_of(plan_of(STEP | {"title": "\x00\x1b\n"})).startswith("steps[0].title: ")
    assert len(read_plan(plan_of(STEP | {"title": "x" * MAX_TEXT}))[0].title) == MAX_TEXT


@pytest.mark.spec("AGT-3")
def test_half_characters_do_not_reach_the_files() -> None:
    step = STEP | {"instructions": "a\ud800b", "targets": {"paths": ["x\udfff"]}}
    [read] = read_plan(plan_of(step))
    json.dumps(plan_shape((read,)), ensure_ascii=False).encode()
    assert (read.instructions, read.target_paths) == ("a?b", ("x?",))


TITLES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=10)
STEPS = st.lists(
    st.builds(
        PlanStep,
        id=st.integers(1, 99).map("S{:02d}".format),
        title=TITLES,
        instructions=st.text(st.characters(codec="utf-8"), max_size=10),
        target_paths=st.lists(st.sampled_from(["src", "a/b.py", "", "*"]), max_size=2).map(tuple),
        tests=st.none() | st.sampled_from([(), ("unit",), ("e2e", "unit")]),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda step: step.id,
)


@pytest.mark.spec("AGT-3", "RUN-1")
@settings(max_examples=40)
@given(STEPS)
def test_a_plan_is_written_the_way_it_is_answered(steps: list[PlanStep]) -> None:
    shape = json.loads(json.dumps(plan_shape(tuple(steps))))
    assert read_plan({"steps": shape}) == tuple(steps)
    assert all(list(step)[:4] == ["id", "title", "instructions", "targets"] for step in shape)
