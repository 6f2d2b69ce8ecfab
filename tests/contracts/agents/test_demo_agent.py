"""The demo agent (AGT-1, AGT-2), as a program: it speaks the protocol and does what a request's text says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.agents import demo
from aiflow.domain.agents.answers import Implemented, Planned, Question, Reviewed, Role, Spoiled, read_answer
from aiflow.domain.agents.call import AgentCall, Brief, Feedback
from aiflow.domain.agents.document import document
from aiflow.domain.agents.plan import PlanStep, whole_request

PLANNER, IMPLEMENTER, QA = Role
STEPS = tuple(PlanStep(f"S{number:02d}", "x") for number in range(1, 4))


# An interpreter that has started once and forks for each call: the start is most of what a call costs. Each is a
# process of its own all the same, with its own folder, environment and streams, and ends as the program does.
FORKING = """
import gc, json, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import demo
gc.freeze()  # else a child copies every page of it
for line in sys.stdin:
    job = json.loads(line)
    if (child := os.fork()) == 0:
        for number, (name, how) in enumerate(job["streams"]):
            os.dup2(os.open(name, how, 0o600), number)
        os.chdir(job["cwd"])
        os.environ.clear()
        os.environ.update(job["env"])
        sys.exit(demo.main())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def forking() -> Iterator[subprocess.Popen[str]]:
    """Give a started interpreter, as the engine starts it for the agent."""
    argv = [sys.executable, "-I", "-S", "-c", FORKING, demo.__file__]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


class Demo:
    """Calls the program in a worktree, as the engine does."""

    def __init__(self, folder: Path, forking: subprocess.Popen[str]) -> None:
        self.worktree, self.result = folder / "worktree", folder / "result.json"
        self.worktree.mkdir()
        self.said = ""
        self._folder, self._forking = folder, forking

    def run(
        self, role: Role, body: str, step: int = 1, attempt: int = 1, **more: Any
    ) -> subprocess.CompletedProcess[bytes]:
        self.result.unlink(missing_ok=True)
        is_planner = role is PLANNER
        steps = tuple(replace(each, target_paths=more.get("paths", ())) for each in more.get("plan", STEPS))
        call = AgentCall(
            role=role,
            brief=Brief("RQ-1", "A title", body, "P1"),
            run_id="RUN-1",
            cwd=str(self.worktree),
            step=None if is_planner else steps[step - 1],
            plan=() if is_planner else steps,
            attempt=attempt,
            feedback=more.get("feedback", ()),
            answers=more.get("answers", ()),
        )
        env = {"PATH": os.environ["PATH"], "AIFLOW_RESULT": str(self.result), **more.get("env", {})}
        words = json.dumps(document(replace(call)), ensure_ascii=False).encode()
        done = self._start(env, words) if "env" in more else self._fork(env, words)
        self.said = done.stdout.decode()
        return done

    def _start(self, env: dict[str, str], words: bytes) -> subprocess.CompletedProcess[bytes]:
        """Start an interpreter, which reads some of its environment only then."""
        argv = [sys.executable, "-I", "-S", demo.__file__]
        return subprocess.run(argv, cwd=self.worktree, env=env, input=words, capture_output=True, check=False)

    def _fork(self, env: dict[str, str], words: bytes) -> subprocess.CompletedProcess[bytes]:
        stdin, stdout, stderr = (self._folder / name for name in ("stdin", "stdout", "stderr"))
        stdin.write_bytes(words)
        new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        streams = [(str(stdin), os.O_RDONLY), (str(stdout), new), (str(stderr), new)]
        assert self._forking.stdin is not None
        assert self._forking.stdout is not None
        self._forking.stdin.write(json.dumps({"cwd": str(self.worktree), "env": env, "streams": streams}) + "\n")
        self._forking.stdin.flush()
        code = int(self._forking.stdout.readline())
        return subprocess.CompletedProcess([], code, stdout.read_bytes(), stderr.read_bytes())

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
def agent(tmp_path: Path, forking: subprocess.Popen[str]) -> Demo:
    return Demo(tmp_path, forking)


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
    plan = agent.ask(PLANNER, TWO_STEPS, env={})
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


@pytest.mark.spec("AGT-1", "RUN-18")
def test_without_a_plan_the_only_step_does_everything(agent: Demo) -> None:
    plan = (*whole_request("A title"), PlanStep("S02", "Merge main"))
    assert agent.ask(IMPLEMENTER, TWO_STEPS, plan=plan) == Implemented("A title")
    assert agent.files() == {"src/a.txt": "one\n## no heading\ntwo\n"}
    agent.ask(IMPLEMENTER, TWO_STEPS, step=2, plan=plan)
    assert agent.files() == {"src/a.txt": "one\n## no heading\ntwo\n"}


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
    assert agent.ask(IMPLEMENTER, body) == Question("Which colour? 色は？")
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
    assert agent.ask(IMPLEMENTER, body, step=2, answers=answers) == Question("Two?")
    answers = (*answers, ("Two?", "2"))
    agent.ask(IMPLEMENTER, body, step=2, answers=answers)
    agent.ask(IMPLEMENTER, body, step=1, answers=answers)
    agent.ask(IMPLEMENTER, body, step=3, answers=answers)
    assert agent.files() == {"a": "1\n", "b": "2\n", "c": "2\n"}


@pytest.mark.spec("AGT-1", "SEC")
@pytest.mark.parametrize("path", ["../out", "/tmp/aiflow-demo-out", "a/../../out", ".."])
@pytest.mark.parametrize("kind", ["write", "append", "replace", "delete"])
def test_a_path_outside_the_worktree_is_a_failure(agent: Demo, kind: str, path: str) -> None:
    (agent.worktree.parent / "out").write_text("mine")
    done = agent.run(IMPLEMENTER, f"```{kind} {path}\nx\n```\n")
    assert done.returncode == 1
    assert b"outside the worktree" in done.stderr
    assert not agent.result.exists()
    assert (agent.worktree.parent / "out").read_text() == "mine"
    assert not os.path.exists("/tmp/aiflow-demo-out")


@pytest.mark.spec("AGT-1", "SEC")
def test_a_failure_of_the_whole_program_is_told_too(agent: Demo) -> None:
    done = agent.run(IMPLEMENTER, "```write ../out\nx\n```\n", env={})
    assert (done.returncode, done.stderr, agent.result.exists()) == (1, b"../out is outside the worktree\n", False)
    agent.ask(IMPLEMENTER, TWO_STEPS, step=1, env={})
    assert agent.ask(QA, TWO_STEPS, step=1, env={}).is_passed


# --- replacing lines -------------------------------------------------------------------------------------------------

SWAP = "```replace a.txt\ntwo\n=>\n2\n2b\n```\n"
INSERT = "```replace a.txt\none\n=>\none\nhalf\n```\n"
REMOVE = "```replace a.txt\ntwo\n=>\n```\n"


@pytest.mark.spec("AGT-1")
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("body", "before", "after"),
    [
        (SWAP, "one\ntwo\nthree\n", "one\n2\n2b\nthree\n"),
        (SWAP, "two\ntwo\n", "2\n2b\ntwo\n"),
        (SWAP, "fortytwo\ntwo\n", "fortytwo\n2\n2b\n"),  # whole lines only
        (INSERT, "zero\none\ntwo\n", "zero\none\nhalf\ntwo\n"),
        (REMOVE, "one\ntwo\nthree\n", "one\nthree\n"),
        (SWAP.replace("2b", r"\1 \\n"), "two\n", "2\n\\1 \\\\n\n"),
    ],
)
def test_lines_are_replaced(agent: Demo, body: str, before: str, after: str, eol: str) -> None:
    path = agent.worktree / "a.txt"
    path.write_bytes(before.replace("\n", eol).encode())
    assert agent.ask(PLANNER, body).steps[0].target_paths == ("a.txt",)
    assert agent.ask(IMPLEMENTER, body) == Implemented("A title")
    assert path.read_bytes() == after.replace("\n", eol).encode()


@pytest.mark.spec("AGT-1", "RUN-4")
@pytest.mark.parametrize("body", [SWAP, INSERT])
def test_a_second_attempt_finds_the_lines_replaced_already(agent: Demo, body: str) -> None:
    path = agent.worktree / "a.txt"
    path.write_text("zero\none\ntwo\n")
    agent.ask(IMPLEMENTER, body)
    once = path.read_text()
    agent.ask(IMPLEMENTER, body, attempt=2)
    assert path.read_text() == once


@pytest.mark.spec("AGT-1")
@pytest.mark.parametrize(
    ("body", "before", "said"),
    [
        (SWAP, "one\n", "a.txt has no such lines: two"),
        (SWAP, None, "there is no file a.txt"),
        ("```replace a.txt\ntwo\n```\n", "two\n", "old lines, a line `=>`, new lines"),
        ("```replace a.txt\n=>\ntwo\n```\n", "two\n", "old lines, a line `=>`, new lines"),
    ],
)
def test_what_cannot_be_replaced_is_a_failure(agent: Demo, body: str, before: str | None, said: str) -> None:
    if before is not None:
        (agent.worktree / "a.txt").write_text(before)
    done = agent.run(IMPLEMENTER, body)
    assert done.returncode == 1
    assert said in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    assert agent.files() == ({} if before is None else {"a.txt": before})


@pytest.mark.spec("AGT-1", "RUN-10")
def test_an_answer_may_become_a_literal_in_code(agent: Demo) -> None:
    body = "```ask\nWhich?\n```\n```write a.py\nWHICH = {answer!r}  # {answer}\n```\n"
    said = 'say "遅い"\\ {answer}'
    agent.ask(IMPLEMENTER, body, answers=(("Which?", said),))
    code = agent.files()["a.py"]
    assert code.endswith(f"# {said}\n")
    assert eval(code.partition("=")[2]) == said


# --- conflicts -------------------------------------------------------------------------------------------------------

TOLD = (Feedback("MERGE_CONFLICT", "both changed it"),)
PLAIN = "a\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> main\nz\n"
OF_THREE = "<<<<<<< HEAD\nours\n||||||| 1234567\nbase\n=======\ntheirs\n>>>>>>> main\n"


@pytest.mark.spec("AGT-1", "GIT-3")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PLAIN, "a\nours\ntheirs\nz\n"),
        (OF_THREE, "ours\ntheirs\n"),
        (PLAIN + OF_THREE, "a\nours\ntheirs\nz\nours\ntheirs\n"),
        (PLAIN.replace("\n", "\r\n"), "a\r\nours\r\ntheirs\r\nz\r\n"),
        ("<<<<<<< HEAD\n=======\ntheirs\n>>>>>>> main", "theirs\n"),
    ],
)
@pytest.mark.parametrize("is_told", [True, False])  # also when it is called again after a stop
def test_in_the_step_of_a_merge_it_keeps_both_sides(agent: Demo, before: str, after: str, is_told: bool) -> None:
    (agent.worktree / "a.txt").write_bytes(before.encode())
    (agent.worktree / "b.txt").write_text("untouched\n")
    body = "```write new.txt\nx\n```\n```reject\nNo.\n```\n"  # what is done already is not done again
    more: dict[str, Any] = {"paths": ("a.txt", "b.txt", "gone.txt"), "feedback": TOLD if is_told else ()}
    assert agent.ask(IMPLEMENTER, body, step=2, **more) == Implemented("x")
    assert (agent.worktree / "a.txt").read_bytes().decode() == after
    assert sorted(agent.files()) == ["a.txt", "b.txt"]
    assert "resolve a.txt" in agent.said
    assert agent.ask(QA, body, step=2, **more).is_passed
    agent.ask(IMPLEMENTER, body, step=2, **more)  # there is nothing left to resolve
    assert sorted(agent.files()) == ["a.txt", "b.txt"]


@pytest.mark.spec("AGT-1", "GIT-3")
def test_told_of_a_conflict_in_a_step_of_its_own_it_resolves_it(agent: Demo) -> None:
    (agent.worktree / "a.txt").write_text(PLAIN)
    agent.ask(IMPLEMENTER, "```write b.txt\nx\n```\n", paths=("a.txt",), feedback=TOLD)
    assert agent.files() == {"a.txt": "a\nours\ntheirs\nz\n"}


@pytest.mark.spec("AGT-1", "GIT-3")
def test_a_new_run_that_was_told_of_an_old_conflict_does_its_work(agent: Demo) -> None:
    agent.ask(IMPLEMENTER, "```write a.txt\nx\n```\n", paths=("a.txt",), feedback=TOLD)
    assert agent.files() == {"a.txt": "x\n"}


@pytest.mark.spec("AGT-1", "AGT-3")
def test_a_plan_with_such_a_path_is_refused(agent: Demo) -> None:
    agent.run(PLANNER, "```write ../out\nx\n```\n")
    answer = read_answer(PLANNER, agent.result.read_bytes())
    assert isinstance(answer, Spoiled)
    assert (answer.reason_code, answer.detail.key) == ("JSON_SCHEMA_INVALID", "flaw.outside")


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
    assert agent.ask(IMPLEMENTER, body, env=locale) == Question("日本語？")
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


@pytest.mark.spec("PRF-6")
def test_it_imports_nothing_that_costs_time() -> None:
    script = f"import sys; sys.path.insert(0, {os.path.dirname(demo.__file__)!r}); import demo; print(*sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", script]
    loaded = set(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split())
    assert "json" in loaded
    assert not loaded & {"contextlib", "dataclasses", "inspect", "pathlib", "subprocess", "typing", "urllib"}
