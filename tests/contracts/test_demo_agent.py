"""The demo agent (AGT-1, AGT-2), as a program: it speaks the protocol and does what a request's text says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.agents import demo
from aiflow.domain.agent_call import AgentCall, document
from aiflow.domain.answers import Asked, Implemented, Planned, Reviewed, Role, Spoiled, read_answer
from aiflow.domain.plan import PlanStep
from aiflow.domain.run import Brief

PLANNER, IMPLEMENTER, QA = Role
STEPS = tuple(PlanStep(f"S{number:02d}", "x") for number in range(1, 4))


class Demo:
    """Calls the program in a worktree, as the engine does."""

    def __init__(self, folder: Path) -> None:
        self.worktree, self.result = folder / "worktree", folder / "result.json"
        self.worktree.mkdir()
        self.said = ""

    def run(
        self, role: Role, body: str, step: int = 1, attempt: int = 1, **more: Any
    ) -> subprocess.CompletedProcess[bytes]:
        self.result.unlink(missing_ok=True)
        is_planner = role is PLANNER
        call = AgentCall(
            role=role,
            brief=Brief("RQ-1", "A title", body, "P1"),
            run_id="RUN-1",
            cwd=str(self.worktree),
            step=None if is_planner else STEPS[step - 1],
            plan=() if is_planner else STEPS,
            attempt=attempt,
            answers=more.get("answers", ()),
        )
        done = subprocess.run(
            [sys.executable, "-I", "-S", demo.__file__],
            cwd=self.worktree,
            env={"PATH": os.environ["PATH"], "AIFLOW_RESULT": str(self.result), **more.get("env", {})},
            input=json.dumps(document(replace(call)), ensure_ascii=False).encode(),
            capture_output=True,
            check=False,
        )
        self.said = done.stdout.decode()
        return done

    def ask(self, role: Role, body: str, step: int = 1, attempt: int = 1, **more: Any) -> Any:
        done = self.run(role, body, step, attempt, **more)
        assert (done.returncode, done.stderr) == (0, b"")
        answer = read_answer(role, self.result.read_bytes())
        assert not isinstance(answer, Spoiled), answer
        return answer

    def files(self) -> dict[str, str]:
        found = (path for path in self.worktree.rglob("*") if path.is_file())
        return {str(path.relative_to(self.worktree)): path.read_text(encoding="utf-8") for path in found}


@pytest.fixture
def agent(tmp_path: Path) -> Demo:
    return Demo(tmp_path)


TWO_STEPS = """
# A title

Words before.

## Write it

Please.

```write src/a.txt
one
## no heading
```

## Only words

## Change it

```append src/a.txt
two
```
```delete old.txt
```
"""


# --- planner ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("AGT-1", "AGT-3")
def test_every_heading_with_something_to_do_is_a_step(agent: Demo) -> None:
    plan = agent.ask(PLANNER, TWO_STEPS)
    assert isinstance(plan, Planned)
    assert [(step.id, step.title, step.target_paths) for step in plan.steps] == [
        ("S01", "Write it", ("src/a.txt",)),
        ("S02", "Change it", ("src/a.txt", "old.txt")),
    ]
    assert plan.steps[0].instructions == "## Write it\n\nPlease."
    assert "2 step(s)" in agent.said
    assert agent.files() == {}


@pytest.mark.spec("AGT-1", "AGT-3")
@pytest.mark.parametrize("body", ["", "Only words.", "## A heading\n\nOnly words.", "```write a\nnever closed"])
def test_without_any_block_there_is_one_step_which_adds_a_line(agent: Demo, body: str) -> None:
    assert [(step.id, step.title) for step in agent.ask(PLANNER, body).steps] == [("S01", "A title")]
    for _ in range(2):
        assert agent.ask(IMPLEMENTER, body) == Implemented("A title")
    assert agent.files() == {"DEMO.md": "- RQ-1: A title\n" * 2}
    assert agent.ask(QA, body) == Reviewed(is_passed=True)


@pytest.mark.spec("AGT-1")
def test_blocks_without_a_heading_are_one_step(agent: Demo) -> None:
    body = "```write a\n1\n```\n\n```write b\n2\n```\n"
    assert [step.target_paths for step in agent.ask(PLANNER, body).steps] == [("a", "b")]
    agent.ask(IMPLEMENTER, body)
    assert agent.files() == {"a": "1\n", "b": "2\n"}


@pytest.mark.spec("AGT-1", "AGT-3")
def test_more_headings_than_a_plan_may_have_are_left_out(agent: Demo) -> None:
    body = "".join(f"## Step {number}\n```write {number}\nx\n```\n" for number in range(120))
    assert len(agent.ask(PLANNER, body).steps) == 99


# --- implementer -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("AGT-1")
def test_a_step_does_its_own_blocks_and_no_others(agent: Demo) -> None:
    (agent.worktree / "old.txt").write_text("x")
    assert agent.ask(IMPLEMENTER, TWO_STEPS, step=1) == Implemented("Write it")
    assert agent.files() == {"src/a.txt": "one\n## no heading\n", "old.txt": "x"}
    assert agent.said == "[demo] write src/a.txt\n"
    assert agent.ask(IMPLEMENTER, TWO_STEPS, step=2) == Implemented("Change it")
    assert agent.files() == {"src/a.txt": "one\n## no heading\ntwo\n"}
    agent.ask(IMPLEMENTER, TWO_STEPS, step=2)  # what is deleted already stays deleted
    assert agent.files()["src/a.txt"].endswith("two\ntwo\n")


@pytest.mark.spec("AGT-1", "RUN-4")
def test_a_block_may_be_for_one_attempt_only(agent: Demo) -> None:
    body = "```write a.txt attempt=1\nwrong\n```\n```write a.txt attempt=2\nright\n```\n```append always\nx\n```\n"
    assert agent.ask(PLANNER, body).steps[0].target_paths == ("a.txt", "a.txt", "always")
    for attempt, text in ((1, "wrong\n"), (2, "right\n"), (3, "right\n")):
        agent.ask(IMPLEMENTER, body, attempt=attempt)
        assert agent.files() == {"a.txt": text, "always": "x\n" * attempt}


@pytest.mark.spec("AGT-1", "RUN-10")
def test_a_question_is_asked_once_and_its_answer_used(agent: Demo) -> None:
    body = "```ask\nWhich colour? 色は？\n```\n```write colour\n{answer}!\n```\n"
    assert agent.ask(IMPLEMENTER, body) == Asked("Which colour? 色は？")
    assert agent.files() == {}
    answered = agent.ask(IMPLEMENTER, body, answers=(("Which colour? 色は？", "赤"),))
    assert answered == Implemented("A title")
    assert agent.files() == {"colour": "赤!\n"}


@pytest.mark.spec("AGT-1", "RUN-10")
def test_every_step_asks_its_own_question(agent: Demo) -> None:
    body = "## A\n```ask\nOne?\n```\n```write a\n{answer}\n```\n## B\n```ask\nTwo?\n```\n```write b\n{answer}\n```\n"
    body += "## C\n```write c\n{answer}\n```\n"
    answers: tuple[tuple[str, str], ...] = (("One?", "1"),)
    agent.ask(IMPLEMENTER, body, step=1, answers=answers)
    assert agent.ask(IMPLEMENTER, body, step=2, answers=answers) == Asked("Two?")
    answers = (*answers, ("Two?", "2"))
    agent.ask(IMPLEMENTER, body, step=2, answers=answers)
    agent.ask(IMPLEMENTER, body, step=1, answers=answers)
    agent.ask(IMPLEMENTER, body, step=3, answers=answers)
    assert agent.files() == {"a": "1\n", "b": "2\n", "c": "2\n"}


@pytest.mark.spec("AGT-1", "SEC")
@pytest.mark.parametrize("path", ["../out", "/tmp/aiflow-demo-out", "a/../../out", ".."])
@pytest.mark.parametrize("kind", ["write", "append", "delete"])
def test_a_path_outside_the_worktree_is_a_failure(agent: Demo, kind: str, path: str) -> None:
    (agent.worktree.parent / "out").write_text("mine")
    done = agent.run(IMPLEMENTER, f"```{kind} {path}\nx\n```\n")
    assert done.returncode == 1
    assert b"outside the worktree" in done.stderr
    assert not agent.result.exists()
    assert (agent.worktree.parent / "out").read_text() == "mine"
    assert not os.path.exists("/tmp/aiflow-demo-out")


@pytest.mark.spec("AGT-1", "AGT-3")
def test_a_plan_with_such_a_path_is_refused(agent: Demo) -> None:
    agent.run(PLANNER, "```write ../out\nx\n```\n")
    answer = read_answer(PLANNER, agent.result.read_bytes())
    assert isinstance(answer, Spoiled)
    assert (answer.reason_code, "outside" in answer.detail) == ("JSON_SCHEMA_INVALID", True)


@pytest.mark.spec("AGT-1", "REQ-3")
def test_a_request_with_windows_line_ends_is_understood(agent: Demo) -> None:
    body = TWO_STEPS.replace("\n", "\r\n")
    assert [step.title for step in agent.ask(PLANNER, body).steps] == ["Write it", "Change it"]
    agent.ask(IMPLEMENTER, body)
    assert agent.files() == {"src/a.txt": "one\n## no heading\n"}


@pytest.mark.spec("AGT-1")
@pytest.mark.parametrize(
    "locale", [{}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}]
)
def test_no_locale_stands_in_its_way(agent: Demo, locale: dict[str, str]) -> None:
    body = "```ask\n日本語？\n```\n```write 日本\n{answer} ä\n```\n"
    assert agent.ask(IMPLEMENTER, body, env=locale) == Asked("日本語？")
    assert "日本語？" in agent.said
    agent.ask(IMPLEMENTER, body, env=locale, answers=(("日本語？", "はい"),))
    assert agent.files() == {"日本": "はい ä\n"}


# --- qa --------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("AGT-1", "AGT-3")
def test_the_reviewer_rejects_what_it_is_told_to(agent: Demo) -> None:
    body = "```write a\nx\n```\n```reject\n Not good.\n```\n```reject attempt=1\nNot yet.\n```\n"
    assert agent.ask(QA, body) == Reviewed(False, ("Not good.", "Not yet."))
    assert agent.ask(QA, body, attempt=2) == Reviewed(False, ("Not good.",))
    once = "```reject attempt=1\nNot yet.\n```\n"
    assert [agent.ask(QA, once, attempt=n).is_passed for n in (1, 2)] == [False, True]
    assert agent.files() == {}


@pytest.mark.spec("AGT-1", "AGT-3")
def test_each_step_has_its_own_review(agent: Demo) -> None:
    body = "## A\n```write a\nx\n```\n## B\n```write b\nx\n```\n```reject\nNo.\n```\n"
    assert [agent.ask(QA, body, step=step).is_passed for step in (1, 2)] == [True, False]


@pytest.mark.spec("AGT-1")
def test_the_same_call_gives_the_same_answer(agent: Demo) -> None:
    answers = set()
    for _ in range(3):
        agent.ask(PLANNER, TWO_STEPS)
        answers.add(agent.result.read_bytes())
    assert len(answers) == 1


@pytest.mark.spec("AGT-1", "PRF-6")
def test_it_needs_nothing_but_the_standard_library() -> None:
    source = Path(demo.__file__).read_text(encoding="utf-8")
    imported = {line.split()[1].split(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= set(sys.stdlib_module_names)
