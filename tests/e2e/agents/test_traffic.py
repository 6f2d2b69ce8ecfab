"""What real claude and codex send to their models in each kind of run: what the agent knew, and what it did not."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from aiflow.domain.request import RequestId
from aiflow.usecases.runs.accept import LineComment, send_back, whole_comment
from aiflow.usecases.runs.find import find_newest_run
from e2e import one_line
from e2e.aftermath import PLANTED, assert_over
from e2e.bench import Bench
from e2e.claude_bench import ClaudeBench
from e2e.codex_bench import CodexBench
from e2e.model_server import ModelServer
from e2e.model_turns import Answer, Asked, Reply, Script, Shell, done, plan, story, verdict
from e2e.real_agents import STUB_KEY, RealHome
from real_engine import engine_at

pytestmark = pytest.mark.contract

TITLE, WISH = "Greet people", "Write a greeting for everybody who comes in."
CRITERIA = ("A greeting in S01.txt", "A line about it in CHANGES.md")
BODY = f"# {TITLE}\n\n{WISH}\n\n## Acceptance\n\n" + "".join(f"- {each}\n" for each in CRITERIA)
ROLES = ("planner", "implementer", "qa")
ONE_STEP = {"S01": {"implementer": 1, "qa": 1}}


class User:
    """Somebody who works with claude or codex, and everything that the model was asked."""

    def __init__(self, kind: str, bench: Bench, models: ModelServer, home: RealHome) -> None:
        self.its = (ClaudeBench if kind == "claude" else CodexBench)(bench, models, home)
        self.bench, self.models, self.kind = bench, models, kind
        bench.aiflow.environ["OTHER_SECRET"] = PLANTED
        path = bench.root / "requests/RQ-1.md"
        path.write_text(path.read_text().partition("\n---\n")[0] + f"\n---\n\n{BODY}")

    def configure(self, text: str = "") -> None:
        """Write the settings, and commit everything."""
        self.its.configure(text)

    def run(self, script: Script, code: int = 0, **more: object) -> None:
        """Let the model answer by a script in a whole run."""
        self.models.script = script
        self.its.run(code=code, **more)

    def told(self, role: str) -> list[str]:
        """What a role was told, call by call; of a session that is resumed only what was new."""
        asked = [each for each in self.models.turns if each.role == role]
        return [each.prompt for each in asked if not each.results]

    def conversations(self, role: str) -> list[str]:
        """All that the model had before it when a call of a role began: earlier calls of the session, too."""
        asked = [each for each in self.models.turns if each.role == role and not each.results]
        return [json.dumps(each.body.get("messages") or each.body.get("input"), ensure_ascii=False) for each in asked]


@pytest.fixture(params=["claude", "codex"])
def user(request: pytest.FixtureRequest, bench: Bench, models: ModelServer, real_home: RealHome) -> User:
    """Give somebody who works with a real agent and has one request with two criteria."""
    return User(request.param, bench, models, real_home)


def writes(*steps: str) -> Script:
    """Plan these steps, write a file in each, and pass everything."""

    def implement(asked: Asked) -> Reply:
        step = step_of(asked)
        return (
            done(f"Wrote {step} as a poem")
            if asked.results
            else Shell(f"echo 'hush {step}'; echo hi {step} > {step}.txt")
        )

    planned = plan(*steps, targets={"paths": ["S01.txt"]})
    return story(planner=[planned], implementer=implement, qa=[verdict()])


def step_of(asked: Asked) -> str:
    """The step that is asked for."""
    found = re.search(r"(?:implement|review) step (S\d+)", asked.prompt)
    assert found is not None, asked.prompt
    return found[1]


def data(prompt: str, kind: str) -> str:
    """What stands between the tags of one kind; nothing, or once."""
    found = re.findall(rf'<data-(\w+) kind="{kind}"[^>]*>\n(.*?)\n</data-\1>', prompt, re.DOTALL)
    assert len(found) <= 1, kind
    return found[0][1] if found else ""


def shown_files(diff: str) -> list[str]:
    """The files of a diff."""
    return re.findall(r"^diff --git a/(\S+)", diff, re.MULTILINE)


def assert_said_once(user: User) -> None:
    """Whatever happened: no secret, no schema in words, and no session is told the request twice."""
    assert user.models.turns
    for asked in user.models.asked:
        sent = json.dumps(asked.body, ensure_ascii=False)
        assert STUB_KEY not in sent
        assert PLANTED not in sent
    for asked in user.models.turns:
        assert asked.schema is not None
        assert "additionalProperties" not in asked.prompt
    for role in ROLES:
        for conversation in user.conversations(role):
            assert conversation.count(WISH) == 1, role
            assert conversation.count(TITLE) == 1, role
            assert conversation.count("in the structured form that you are asked for") == 1, role


COSTS = Path(__file__).parents[3] / "docs/guides/costs-and-limits.md"
BYTES_PER_TOKEN = 4


def assert_costs_as_the_guide_says(user: User) -> None:
    """Each way costs the calls and tokens of the table in the guide."""
    sent = dict.fromkeys(ROLES, 0)
    for asked in user.models.asked:
        sent[asked.role] += len(json.dumps(asked.body, ensure_ascii=False).encode()) // BYTES_PER_TOKEN
    planner, implementer, review = sent.values()
    costs = {"usual": (3, planner + implementer + review), "`review: no`": (2, planner + implementer)}
    costs |= {"`plan: no`": (2, implementer + review), "`aiflow run ID --quick`": (1, implementer)}
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in COSTS.read_text().splitlines()]
    table = {row[0]: row[2:] for row in rows if row[:1] and row[0] in costs}
    assert table.keys() == costs.keys()
    for way, (calls, tokens) in costs.items():
        of_claude, of_codex = (int(cell.replace(",", "")) for cell in table[way][1:])
        assert table[way][0] == str(calls)
        assert (of_claude if user.kind == "claude" else of_codex) == pytest.approx(tokens, rel=0.12), way


@pytest.mark.spec("AGT-1", "RUN-18", "SEC")
def test_a_request_of_one_step(user: User) -> None:
    guidance = {"AGENTS.md": "Use tabs.", "CLAUDE.md": "Be short.", "CONTRIBUTING.md": "Sign your work."}
    for name, text in guidance.items():
        (user.bench.root / name).write_text(f"{text}\n")
    user.configure()
    user.run(writes("S01"))
    assert assert_over(user.bench, planning=1, steps=ONE_STEP)["state"] == "DONE"
    assert_said_once(user)
    [planner], [implementer], [review] = map(user.told, ROLES)
    for prompt in (planner, implementer, review):
        # What the program reads by itself is not named; of the rest it knows only the names.
        read = {"CLAUDE.md"} if user.kind == "claude" else set()
        assert {name for name in guidance if f"`{name}`" in prompt} == guidance.keys() - read
        assert data(prompt, "request") == BODY.strip()
        assert data(prompt, "plan") == "", "a plan of one step is that step"
    for asked in user.models.turns:
        sent = json.dumps([asked.body.get("messages"), asked.body.get("input"), asked.body.get("instructions")])
        assert {name for name, text in guidance.items() if text in sent} == read
    # The planner knows no step, the implementer its own, and where it would meet a wall.
    assert (data(planner, "step"), data(implementer, "step").partition("\n")[0]) == ("", "S01 Do S01")
    assert "each acceptance criterion included" in planner
    assert "change that file too, and\n  say so in `summary`" in implementer
    for wall in (
        "git is for reading",
        "leave no server",
        "20 files and 400 lines",
        "Never change anything under `requests/`",
    ):
        assert wall in implementer
    assert ".mcp.json" in implementer if user.kind == "claude" else "Commands have no network" in implementer
    # The reviewer sees the change and the engineer's words, not how they came about; the criteria, each one.
    assert data(review, "summary") == "Wrote S01 as a poem"
    assert shown_files(data(review, "diff")) == ["S01.txt"]
    assert data(review, "criteria") == "1. A greeting in S01.txt\n2. A line about it in CHANGES.md"
    assert "No tests ran for this step: nobody but you" in review
    assert "judge everything that was done against the request too" in review
    assert "hush S01" not in user.conversations("qa")[0]
    assert not data(planner, "criteria") and not data(implementer, "criteria")
    assert_costs_as_the_guide_says(user)


@pytest.mark.spec("AGT-1", "RUN-18")
@pytest.mark.parametrize("kind", one_line.USERS)
def test_a_one_line_change_sends_no_more_than_it_may(
    kind: str, bench: Bench, models: ModelServer, real_home: RealHome
) -> None:
    """With `--quick` no more than the plain program; in the usual run no more than its own ceiling, nor far less."""
    seen = one_line.measure(kind, bench, models, real_home)
    for held in one_line.goals(kind, seen):
        assert held.ours <= held.most, held
    assert seen.usual.size > one_line.USUAL_BYTES[kind] * 0.8, "a ceiling that nobody comes near holds nothing"


@pytest.mark.spec("AGT-1", "RUN-18")
def test_three_steps(user: User) -> None:
    user.configure()
    user.run(writes("S01", "S02", "S03"))
    calls = {step: {"implementer": 1, "qa": 1} for step in ("S01", "S02", "S03")}
    stage = assert_over(user.bench, planning=1, steps=calls)
    assert_said_once(user)
    commits = {step["id"]: step["commit"][:12] for step in stage["steps"]}
    first, second, third = user.told("implementer")
    told = "\n".join(
        (
            f"S01 Do S01 (done, commit {commits['S01']})\n   Wrote S01 as a poem",
            "S02 (this step)",
            "S03 Do S03 (to do)",
        )
    )
    assert data(second, "plan") == told
    assert data(first, "plan").count("(done") == 0
    assert data(third, "plan").count("(done, commit") == 2
    # Of a step before: what became of it; not its instructions, its change or its conversation.
    for conversation in user.conversations("implementer")[1:]:
        assert "Write S01.txt" not in conversation
        assert "hi S01" not in conversation
        assert "hush S01" not in conversation
    *before, last = user.told("qa")
    assert [shown_files(data(prompt, "diff")) for prompt in before] == [["S01.txt"], ["S02.txt"]]
    assert not any(data(prompt, "criteria") for prompt in before)
    assert data(last, "criteria").splitlines() == [f"{number}. {each}" for number, each in enumerate(CRITERIA, 1)]
    step, whole = re.findall(r'kind="diff">\n(.*?)\n</data', last, re.DOTALL)
    assert (shown_files(step), shown_files(whole)) == (["S03.txt"], ["S01.txt", "S02.txt", "S03.txt"])


@pytest.mark.spec("RUN-3", "RUN-4", "AGT-1")
def test_a_failing_test(user: User) -> None:
    user.configure(
        '[tests]\nunit = "echo first words; seq 9999 99999; test -e mended.txt || { echo last words; exit 3; }"'
    )

    def implement(asked: Asked) -> Reply:
        again = "UNIT_TEST_FAILED" in asked.prompt
        return (
            done() if asked.results else Shell("touch mended.txt" if again else "echo 'hush 1' > S01.txt; cat S01.txt")
        )

    user.run(story(planner=[plan()], implementer=implement, qa=[verdict()]))
    assert_over(user.bench, planning=1, steps={"S01": {"implementer": 2, "qa": 1}})
    assert_said_once(user)
    first, again = user.told("implementer")
    assert "aiflow runs the project's tests" in first
    assert "unit: `echo first words" in first
    failed = data(again, "feedback")
    assert failed.startswith("UNIT_TEST_FAILED: ")
    assert "exit code 3\nfirst words\n9999\n" in failed
    assert failed.endswith("\n99999\nlast words")
    assert re.search(r"\n\[aiflow\] [\d,]+ bytes of this output are left out here\n", failed)
    assert len(failed) < 7000
    assert "To see all of a failed command's output, run it in the working folder." in again
    assert len(again) - len(failed) < 1500, "the session that goes on is told only what is new"
    assert "hush 1" in user.conversations("implementer")[1], "and knows what it did before"
    [review] = user.told("qa")
    assert "The project's tests have passed: unit: `echo" in review
    assert data(review, "tests").startswith("$ echo first words")
    assert "last words\n" not in data(review, "tests").partition("\n")[2]
    told = data(review, "feedback")
    assert told.startswith("UNIT_TEST_FAILED: ") and "\n" not in told, "that it failed, and not its output"


FORGOTTEN = "CHANGES.md: criterion 2 asks for a line, and there is none"


def forgets(*steps: str, obeys: bool) -> Script:
    """Plan without the second criterion; the reviewer of the last step finds that out."""

    def implement(asked: Asked) -> Reply:
        if asked.results:
            return done()
        again = FORGOTTEN in asked.prompt
        return Shell(
            ("echo - Greets. > CHANGES.md" if obeys else "true") if again else f"echo hi > {step_of(asked)}.txt"
        )

    def review(asked: Asked) -> Answer:
        is_whole = bool(data(asked.prompt, "criteria")) or "still the last step" in asked.prompt
        is_there = "CHANGES.md" in "".join(re.findall(r'kind="diff">\n(.*?)\n</data', asked.prompt, re.DOTALL))
        return verdict(FORGOTTEN) if is_whole and not is_there else verdict()

    return story(planner=[plan(*steps)], implementer=implement, qa=review)


@pytest.mark.spec("RUN-18", "RUN-4")
def test_a_criterion_that_the_plan_forgot_is_done_behind_a_rejected_review(user: User) -> None:
    user.configure()
    user.run(forgets("S01", "S02", obeys=True))
    twice = {"implementer": 2, "qa": 2}
    stage = assert_over(user.bench, planning=1, steps={"S01": {"implementer": 1, "qa": 1}, "S02": twice})
    assert stage["state"] == "DONE"
    assert user.bench.git("show", f"{stage['branch']}:CHANGES.md") == "- Greets."
    assert_said_once(user)
    again = user.told("implementer")[-1]
    assert data(again, "feedback") == f"QA_REJECTED: {FORGOTTEN}"
    assert "Do what the reviewer found, also where it goes beyond the step." in again
    assert "verdict" not in user.conversations("implementer")[-1]
    review = user.told("qa")[-1]
    assert data(review, "feedback") == f"QA_REJECTED: {FORGOTTEN}"
    assert "Check that it is fixed." in review
    assert "judge everything that was done against the request once more" in review
    assert shown_files(data(review, "diff")) == ["CHANGES.md", "S02.txt"]


@pytest.mark.spec("RUN-18", "RUN-4")
def test_a_criterion_that_nobody_does_is_a_finding_and_never_silently_done(user: User) -> None:
    user.configure()
    user.run(forgets("S01", obeys=False), code=5)
    stage = assert_over(user.bench, planning=1, steps={"S01": {"implementer": 2, "qa": 2}})
    assert (stage["state"], stage["error"]["cause"]) == ("NEEDS_INPUT", "QA_REJECTED")
    assert FORGOTTEN in user.bench.report()
    assert "CHANGES.md" not in user.bench.files_at(stage["branch"])


@pytest.mark.spec("RUN-18", "AGT-3", "RUN-19")
def test_a_pass_counts_only_with_every_criterion_judged_and_met(user: User) -> None:
    user.configure()
    skips, denies = verdict(met=1), verdict(met=1, unmet={2: "CHANGES.md is not there"})

    def review(asked: Asked) -> Answer:
        return denies if "says nothing of" in asked.prompt else skips

    user.run(story(planner=[plan()], implementer=[Shell("echo hi > S01.txt"), done()], qa=review), code=5)
    stage = assert_over(user.bench, planning=1, steps={"S01": {"implementer": 1, "qa": 2}})
    assert (stage["state"], stage["error"]["reason_code"]) == ("NEEDS_INPUT", "QA_REJECTED")
    assert_said_once(user)
    first, again = user.told("qa")
    assert "judge each by its number in `criteria`" in first
    skipped = f'the verdict is "pass", but `criteria` says nothing of these acceptance criteria: 2. {CRITERIA[1]}'
    assert data(again, "feedback").endswith(skipped)
    assert "Judge each acceptance criterion again" in again
    report = user.bench.report()
    assert f"- 1. met: {CRITERIA[0]} (seen)\n- 2. not met: {CRITERIA[1]} (CHANGES.md is not there)\n" in report


@pytest.mark.spec("RUN-17")
def test_a_red_base(user: User) -> None:
    """Nobody is asked anything; and once it is green, nobody hears that it was red."""
    user.configure('[tests]\nbaseline = true\nunit = "test ! -e red || { echo it is red; false; }"')
    (user.bench.root / "red").touch()
    user.bench.commit()
    user.run(writes("S01"), code=7)
    assert user.bench.errors()["reason_code"] == "BASE_TESTS_FAILED"
    assert user.models.asked == []
    (user.bench.root / "red").unlink()
    user.bench.commit()
    user.bench.aiflow("resume", "RQ-1")
    assert assert_over(user.bench, planning=1, steps=ONE_STEP)["state"] == "DONE"
    assert_said_once(user)
    assert not any("it is red" in text for role in ROLES for text in said(user, role))


def said(user: User, role: str) -> Sequence[str]:
    """Everything that a role's model was told, but for the command that tests."""
    return [each.partition("unit: `")[0] for each in user.conversations(role)]


RHYME = "The greeting must rhyme."


@pytest.mark.spec("REQ-6a", "AGT-1")
def test_a_run_that_was_sent_back(user: User) -> None:
    """Its agents know what was done and why it came back, and begin where it ended; not the old conversations."""
    user.configure()
    user.run(writes("S01", "S02"))
    before = user.bench.stage()
    commits = {step["id"]: step["commit"][:12] for step in before["steps"]}
    # As the page does it: with a comment on a line, whose number means nothing once the base is merged in.
    engine = engine_at(user.bench.root)
    run = find_newest_run(engine, RequestId("RQ-1"))
    send_back(engine, run, whole_comment(run, RHYME, [LineComment("S01.txt", 1, "In verse.", "hi S01")]))
    user.models.asked.clear()

    def implement(asked: Asked) -> Reply:
        return done("It rhymes") if asked.results else Shell("cat S01.txt S02.txt && echo rhyme > S03.txt")

    user.run(story(planner=[plan("S03")], implementer=implement, qa=[verdict()]))
    stage = assert_over(user.bench, planning=1, steps={"S03": {"implementer": 1, "qa": 1}})
    assert stage["state"] == "DONE"
    assert_said_once(user)
    assert {"S01.txt", "S02.txt", "S03.txt"} <= {*user.bench.files_at(stage["branch"])}
    [planner], [implementer], [review] = map(user.told, ROLES)
    former = "\n".join(
        f"{step} Do {step} (done, commit {commits[step]})\n   Wrote {step} as a poem" for step in commits
    )
    for prompt in (planner, implementer):
        assert data(prompt, "former-plan") == former
        assert shown_files(data(prompt, "diff")) == ["S01.txt", "S02.txt"]
        assert "build on it, and keep what nobody objects to" in prompt
    assert "Plan only what is left to do" in planner
    assert "Plan only what is left to do" not in implementer
    for prompt in (planner, implementer, review):
        assert prompt.count(RHYME) == 1, "the person's words, once"
        assert prompt.count("S01.txt:1: In verse. (at `hi S01`)") == 1, "and what the number meant"
        assert "SENT_BACK: a person sent the work back" in data(prompt, "feedback")
    assert "hi S01\nhi S02" in next(asked.results[0] for asked in user.models.turns if asked.results)
    # The last review has the whole change, that of the run before included.
    step, whole = re.findall(r'kind="diff">\n(.*?)\n</data', review, re.DOTALL)
    assert (shown_files(step), shown_files(whole)) == (["S03.txt"], ["S01.txt", "S02.txt", "S03.txt"])
    assert data(review, "criteria")
    assert not any("hush S0" in conversation for role in ROLES for conversation in user.conversations(role))


@pytest.mark.spec("REQ-10", "AGT-3")
def test_a_follow_up(user: User) -> None:
    """Who does the work may propose more, and who does that later is told of nothing else."""
    user.configure()
    offer = {"title": "Close the door", "body": "The door stays open behind everybody who comes in."}
    finished = Answer({"status": "done", "summary": "Greets all", "follow_ups": [offer]})
    user.run(story(planner=[plan()], implementer=[Shell("echo hi > S01.txt"), finished], qa=[verdict()]))
    assert_over(user.bench, planning=1, steps=ONE_STEP)
    assert_said_once(user)
    [planner], [implementer], [review] = map(user.told, ROLES)
    assert ["`follow_ups`" in prompt for prompt in (planner, implementer, review)] == [False, True, True]
    assert offer["title"] not in review, "what is found is no concern of the reviewer"
    [draft] = [path for path in (user.bench.root / "requests").glob("*.md") if path.stem != "RQ-1"]
    assert "status: draft" in draft.read_text()
    assert "found_in: RQ-1" in draft.read_text()

    user.models.asked.clear()
    user.bench.aiflow("set", draft.stem, "status=ready")
    user.models.script = writes("S01")
    user.bench.run(draft.stem)
    for role in ROLES:
        [conversation] = user.conversations(role)
        assert conversation.count(offer["body"]) == 1
        assert conversation.count(offer["title"]) == 1
        assert WISH not in conversation
        assert "Greets all" not in conversation
        assert "follow-up" not in data(user.told(role)[0], "request")
