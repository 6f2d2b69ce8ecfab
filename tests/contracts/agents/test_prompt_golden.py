"""What each agent is told, word for word: one file for each kind of agent and each turn, read in the diff.

`RECORD=1 python -m pytest tests/contracts/agents/test_prompt_golden.py` writes the files anew. No word of a prompt depends
on the language of aiflow's user (`test_prompt_language.py` plays a run in both): an agent writes in the language of the
request, which is English in `*-english.md` and Japanese in `*-japanese.md`.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.agents.acp.driver import AcpDriver
from aiflow.adapters.agents.call.command import Launch, Surroundings
from aiflow.adapters.agents.call.means import guidance_in
from aiflow.adapters.agents.call.prompts import prompt_for
from aiflow.adapters.agents.call.stream import Driver
from aiflow.adapters.agents.claude.agent import ClaudeDriver
from aiflow.adapters.agents.codex.agent import CodexDriver
from aiflow.adapters.secrets import Masker
from aiflow.domain.agents.answer_schema import SCHEMAS
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, Brief, Feedback, StepDone
from aiflow.domain.agents.document import document
from aiflow.domain.agents.former import Former, FormerStep
from aiflow.domain.agents.plan import PlanStep, merging_step, whole_request

pytestmark = pytest.mark.spec("AGT-1", "AGT-2", "RUN-3")

GOLDEN = Path(__file__).parents[2] / "fixtures/prompts"
BODY = """# Greet in Japanese

The greeting is English only.

## Sent back (2026-01-04)

Keep the English one too.
"""
PLAN = (
    PlanStep("S01", "Add a table of greetings", "Add `greetings.py` with English.", ("greetings.py",)),
    PlanStep("S02", "Add Japanese to the table", "Add `ja`; `greet('ja')` says こんにちは.", ("greetings.py",)),
    PlanStep("S03", "Say so in the README", "Name both languages.", ("README.md",)),
)
RED = Feedback(
    "UNIT_TEST_FAILED",
    "pytest -q: exit code 1",
    "collected 3 items\n[aiflow] 12,345 bytes of this output are left out here\nE  assert 'Hello' == 'こんにちは'",
)
FOUND = Feedback("QA_REJECTED", "greetings.py: an unknown language raises KeyError; it should greet in English")
BACK = Feedback("SENT_BACK", "Keep the English one too.")
FIRST = AgentCall(
    role=Role.PLANNER,
    brief=Brief("RQ-7", "Greet in Japanese", BODY, "P1"),
    run_id="RUN-20260105-030405-abcdef",
    cwd="/w",
    step=None,
    plan=(),
    attempt=1,
    feedback=(BACK,),
    tests={"unit": "pytest -q"},
)
STEP = replace(
    FIRST,
    role=Role.IMPLEMENTER,
    step=PLAN[1],
    plan=PLAN,
    done={"S01": StepDone("Added a table of greetings, with English in it.", "0123456789abcdef")},
)
REVIEW = replace(
    STEP,
    role=Role.QA,
    summary="Added Japanese. `cli.py` had to change too, for it named the languages itself.",
    test_output="$ pytest -q\n3 passed in 0.02s",
    began="9999999999999999999999999999999999999999",
    changes=lambda: "--- a/greetings.py\n+++ b/greetings.py\n@@ -1 +1,2 @@\n en = 'Hello'\n+ja = 'こんにちは'\n",
)
# The last step: with criteria, and, where the request names none and has one step, without more to see.
LAST = replace(
    REVIEW,
    brief=Brief(
        "RQ-7", "Greet in Japanese", f"{BODY}\n## 受け入れ条件\n\n- 日本語で挨拶する\n- [ ] README says so\n", "P1"
    ),
    step=PLAN[2],
    done={**STEP.done, "S02": StepDone("Added Japanese.", None)},
    whole=lambda: "--- a/greetings.py\n+++ b/greetings.py\n@@ -0,0 +1 @@\n+everything\n",
)
# The run before: sent back and continued, or replaced by one with a new plan.
BEFORE = Former(
    "RUN-20260104-030405-abcdef",
    "SENT_BACK",
    "1111111111111111111111111111111111111111",
    "2222222222222222222222222222222222222222",
    (
        FormerStep("S01", "Merge main", True, "", None),
        FormerStep("S02", "Greet in Japanese", True, "Replaced English by Japanese.", "2222222222222222"),
    ),
)
CONTINUES: Mapping[str, Any] = {
    "former": BEFORE,
    "former_diff": lambda: "diff --git a/greetings.py b/greetings.py\n-en = 'Hello'\n+ja = 'こんにちは'\n",
    "continues": BEFORE.run_id,
}
FAILED = replace(BEFORE, reason_code="STEP_TOO_LARGE", steps=(*BEFORE.steps[1:], FormerStep("S03", "The rest")))
REPLANNED: Mapping[str, Any] = {
    **CONTINUES,
    "former": FAILED,
    "continues": None,
    "feedback": (Feedback("STEP_TOO_LARGE", "31 files"),),
}
# No planner: the only step is the request (RUN-18).
QUICK = whole_request("Greet in Japanese")
QUICKLY: Mapping[str, Any] = {"plan": QUICK, "step": QUICK[0], "done": {}}
# The base has moved on: it is merged in before the plan of a run that continues another, or behind one that is done.
CONFLICTS, IN_LINE = merging_step((), "main", ("greetings.py",)), merging_step((), "main", ())
AT_LAST = merging_step(PLAN, "main", ("greetings.py",))
assert CONFLICTS and IN_LINE and AT_LAST
TO_RESOLVE = Feedback("MERGE_CONFLICT", "resolve the conflict markers in: greetings.py")
BEFORE_THE_PLAN: Mapping[str, Any] = {**CONTINUES, "is_planned": False, "done": {}}


def all_in(language: str) -> Mapping[str, Any]:
    """A request whose texts are all in one language, and what was said and done for it."""
    is_english = language == "english"
    title = "Greet guests" if is_english else "来客に挨拶する"
    wish, criterion = (
        ("Nobody is greeted.", "Guests are greeted") if is_english else ("誰も声をかけません。", "声をかける")
    )
    heading = "Acceptance criteria" if is_english else "受け入れ条件"
    step = PlanStep("S01", *(("Add a greeting", "In `hi.py`.") if is_english else ("挨拶を追加", "`hi.py` に書く。")))
    return {
        "brief": Brief("RQ-8", title, f"# {title}\n\n{wish}\n\n## {heading}\n\n- {criterion}\n", "P2"),
        "plan": (step,),
        "step": step,
        "done": {},
        "feedback": (Feedback("QA_REJECTED", "hi.py: empty" if is_english else "hi.py: 空です"),),
        "answers": (("Formal?", "Yes") if is_english else ("丁寧に?", "はい"),),
        "summary": "Greets." if is_english else "できました。",
        "changes": lambda: f"--- a/hi.py\n+++ b/hi.py\n@@ -0,0 +1 @@\n+print('{'Hi' if is_english else 'やあ'}')\n",
    }


AGAIN = {
    "claude": "0f8c5d3e-1111-4222-8333-444455556666",
    "codex": "0f8c5d3e-1111-4222-8333-444455556666",
    "acp": "s+5",
}
CALLS: Mapping[str, AgentCall] = {
    "planner": FIRST,
    "planner-sent-back": replace(FIRST, **CONTINUES),
    "planner-replanned": replace(FIRST, **REPLANNED),
    "planner-replanned-on-a-branch": replace(FIRST, **{**REPLANNED, "continues": "RUN-20260103-030405-abcdef"}),
    "implementer-sent-back": replace(STEP, **CONTINUES),
    "qa-sent-back": replace(REVIEW, **CONTINUES),
    "qa-last-sent-back": replace(LAST, feedback=(BACK,), **CONTINUES),
    "planner-without-tests": replace(FIRST, tests={}, feedback=(), answers=(("Which greeting?", "こんにちは"),)),
    "implementer": STEP,
    "implementer-after-a-failure": replace(STEP, attempt=2, feedback=(BACK, RED)),
    "implementer-again": replace(STEP, attempt=2, feedback=(BACK, FOUND), session_id="again"),
    "implementer-without-tests": replace(STEP, tests={}),
    "qa": REVIEW,
    "qa-last": LAST,
    "qa-last-again": replace(LAST, attempt=2, feedback=(BACK, FOUND), session_id="again"),
    "qa-only-step": replace(REVIEW, plan=PLAN[1:2], done={}),
    "qa-again": replace(REVIEW, attempt=2, feedback=(BACK, FOUND), session_id="again"),
    "implementer-quick": replace(STEP, feedback=(), **QUICKLY),
    "qa-without-a-plan": replace(LAST, feedback=(), whole=None, **QUICKLY),
    "implementer-merge-conflicts": replace(
        STEP, plan=(CONFLICTS,), step=CONFLICTS, feedback=(TO_RESOLVE,), **BEFORE_THE_PLAN
    ),
    "implementer-merge-failed-tests": replace(STEP, plan=(IN_LINE,), step=IN_LINE, feedback=(RED,), **BEFORE_THE_PLAN),
    "qa-merge": replace(REVIEW, plan=(CONFLICTS,), step=CONFLICTS, feedback=(TO_RESOLVE,), **BEFORE_THE_PLAN),
    "qa-last-after-a-merge": replace(
        LAST,
        plan=(*PLAN, AT_LAST),
        step=AT_LAST,
        done={**LAST.done, "S03": StepDone("Named both.", "3333333333333333")},
        feedback=(TO_RESOLVE,),
    ),
    **{
        f"planner-{name}": replace(FIRST, **{**all_in(name), "step": None, "plan": ()})
        for name in ("english", "japanese")
    },
    **{f"implementer-{name}": replace(STEP, **all_in(name)) for name in ("english", "japanese")},
    **{f"qa-last-{name}": replace(REVIEW, **all_in(name)) for name in ("english", "japanese")},
    "qa-without-tests": replace(REVIEW, tests={}, test_output="", feedback=(RED,)),
}


DOCUMENTS = ("planner", "planner-sent-back", "implementer-after-a-failure", "implementer-quick", "qa", "qa-last")


class Confined:
    """Processes of a machine whose kernel can confine them, or cannot."""

    def __init__(self, how: str | None) -> None:
        self._how = how

    def confinement(self) -> str | None:
        return self._how


DRIVERS: Mapping[str, Callable[[Launch, Surroundings], Driver]] = {
    "claude": ClaudeDriver,
    "codex": CodexDriver,
    "acp": AcpDriver,
}


def prompt_of(kind: str, call: AgentCall, folder: Path, how: str | None = "landlock", sandbox: str = "auto") -> str:
    """What a real driver tells its program, in a project with instructions for agents and for people."""
    for name in ("work", "scratch"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "work/CLAUDE.md").write_text("Be brief.\n")
    (folder / "work/AGENTS.md").write_text("Use tabs.\n")
    (folder / "work/CONTRIBUTING.md").write_text("Sign your commits.\n")
    environ = {"HOME": str(folder / "home"), "PATH": ""}
    places = (str(folder), str(folder), str(folder), environ)
    around = Surroundings(*places, Confined(how), Masker({}), str(folder / "caches"))  # type: ignore[arg-type]
    launch = Launch(("opencode", "acp") if kind == "acp" else (), 1800, 600, sandbox=sandbox)
    session = AGAIN[kind] if call.session_id else None
    told = replace(call, cwd=str(folder / "work"), session_id=session)
    text = DRIVERS[kind](launch, around).start(told, str(folder / "scratch")).stdin.decode()
    return str(json.loads(text)["prompt"]) if kind == "acp" else text


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize("kind", DRIVERS)
def test_without_a_sandbox_nothing_is_said_to_be_refused(kind: str, tmp_path: Path) -> None:
    for call in (FIRST, STEP, REVIEW):
        prompt = prompt_of(kind, call, tmp_path, sandbox="off")
        assert not re.search("refuses|can write nothing|fail here|no network", prompt)


def compare(path: Path, text: str) -> None:
    """Hold a text against its file, or write it."""
    if os.environ.get("RECORD"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", DRIVERS)
def test_each_agent_is_told_what_its_file_says(kind: str, name: str, tmp_path: Path) -> None:
    compare(GOLDEN / kind / f"{name}.md", prompt_of(kind, CALLS[name], tmp_path))


@pytest.mark.parametrize("name", ["implementer", "qa"])
@pytest.mark.parametrize("kind", ["claude", "acp"])
def test_where_the_kernel_does_not_confine_it_an_agent_is_told_so(kind: str, name: str, tmp_path: Path) -> None:
    compare(GOLDEN / kind / f"{name}-unconfined.md", prompt_of(kind, CALLS[name], tmp_path, None))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_program_of_any_kind_gets_the_document_that_its_file_says(name: str) -> None:
    text = json.dumps(document(CALLS[name]), ensure_ascii=False, indent=1)
    compare(GOLDEN / "command" / f"{name}.json", f"{text}\n")


def test_every_file_is_somebodys() -> None:
    known = {f"{kind}/{name}.md" for kind in DRIVERS for name in CALLS}
    known |= {f"{kind}/{name}-unconfined.md" for kind in ("claude", "acp") for name in ("implementer", "qa")}
    known |= {f"command/{name}.json" for name in DOCUMENTS}
    assert {str(path.relative_to(GOLDEN)) for path in GOLDEN.rglob("*.*")} == known


@pytest.mark.parametrize("kind", DRIVERS)
@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_said_twice(kind: str, name: str, tmp_path: Path) -> None:
    call = CALLS[name]
    prompt = prompt_of(kind, call, tmp_path)
    is_new = call.session_id is None
    # Titles: that of the request, of each step of the plan, of each former step; wherever they stand.
    steps = [step.title for step in call.plan]
    steps += [step.title for step in call.former.steps] if call.former and "Its plan:" in prompt else []
    titles = [call.brief.title, *(title for title in steps if title != call.brief.title)]
    assert Counter({title: prompt.count(title) for title in titles}) == Counter(titles if is_new else ())
    comment = "Keep the English one too."  # it stands in the request
    assert prompt.count(comment) == (is_new and comment in call.brief.body)
    asks = json.dumps(SCHEMAS[call.role])[:60] in prompt
    assert asks == (kind == "acp" and is_new)  # the others hold the program itself to it
    lines = [line for line in prompt.splitlines() if len(line) > 30]
    assert sorted(lines) == sorted(set(lines))
    assert not re.search(r"\{[a-z_]+\}", prompt)


# What a call of a small request may say at most, in bytes: who makes a prompt longer decides that here.
BUDGETS = {"implementer-quick": 3_500, "planner-english": 3_000, "implementer-english": 3_700, "qa-last-english": 4_500}


@pytest.mark.spec("AGT-1")
@pytest.mark.parametrize("name", BUDGETS)
@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_the_prompts_of_a_small_request_keep_to_their_budget(kind: str, name: str, tmp_path: Path) -> None:
    size = len(prompt_of(kind, CALLS[name], tmp_path).encode())
    assert BUDGETS[name] * 0.85 < size <= BUDGETS[name]


@pytest.mark.spec("REQ-6")
def test_a_comment_that_is_not_part_of_the_request_is_told_whole() -> None:
    body = BODY.replace("\n", "\r\n")
    for comment, is_told in (("Keep the English one too.", False), ("English", True), ("Shorter.", True)):
        call = replace(STEP, brief=replace(STEP.brief, body=body), feedback=(Feedback("SENT_BACK", comment),))
        assert (f"SENT_BACK: {comment}\n" in prompt_for(call)) is is_told


@pytest.mark.parametrize("kind", DRIVERS)
def test_an_agent_is_told_of_its_limits_and_of_the_projects_instructions_before_its_task_is_described(
    kind: str, tmp_path: Path
) -> None:
    prompt = prompt_of(kind, STEP, tmp_path)
    named = re.search(r"instructions for whoever works on it in (.*)\. Read", prompt)
    own = ["`CLAUDE.md`"] if kind != "claude" else []  # which claude reads by itself
    assert named is not None
    assert named[1].split(", ") == ["`AGENTS.md`", *own, "`CONTRIBUTING.md`"]
    assert prompt.index("# What you can do here") < named.start() < prompt.index("Keep the English")


def test_guidance_that_an_agent_reads_already_is_not_named(tmp_path: Path) -> None:
    files = {"AGENTS.md": "Use tabs.\n", "CONTRIBUTING.md": " \n", "docs/CONTRIBUTING.md": "Sign.\n"}
    (tmp_path / "docs").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for own, named in (("Be brief.\n", ("AGENTS.md",)), ("Use tabs.\n", ()), ("See @AGENTS.md\n", ())):
        (tmp_path / "CLAUDE.md").write_text(own)
        assert guidance_in(str(tmp_path), ("CLAUDE.md",)) == (*named, "docs/CONTRIBUTING.md")
    (tmp_path / "CLAUDE.md").unlink()
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert guidance_in(str(tmp_path), ()) == ("AGENTS.md", "docs/CONTRIBUTING.md")
