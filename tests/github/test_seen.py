"""What people see of an issue (ISS-2, ISS-6, SEL-5): in lists, by `why`, on its page; and what they can do there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.adapters.github_issues.transport import Ask
from aiflow.domain.backlog.selection import Barrier
from aiflow.domain.issue_ways import ACCEPT, CLOSE, EDIT, LABEL, RELABEL, RETRY, at_github
from aiflow.domain.issues.issue import Blocker
from aiflow.domain.issues.requests import request_of
from aiflow.domain.issues.view import IssueView
from aiflow.domain.next_action import ActionKind
from aiflow.domain.reasons import CATALOGUE, way_to_mend
from aiflow.messages import Texts
from aiflow.messages.commands import said
from aiflow.usecases.shapes.backlog import describe
from e2e.bench import Bench
from github.place import IssuePlace, issue_place
from issue_stories import TRUST, Teller, at

URL = "https://github.com/octo/demo/issues/1"
FACTS = {"request_id": "GH-1", "task_id": "T-1", "branch": "aiflow/x", "run_id": "RUN-1", "path": URL}
# What can be typed about an issue; everything else is done on it.
WORKS = {
    *(ActionKind.RUN, ActionKind.ANSWER, ActionKind.CANCEL, ActionKind.ACCEPT, ActionKind.SEND_BACK),
    *(ActionKind.WHY, ActionKind.SHOW, ActionKind.LOGS, ActionKind.REPORT, ActionKind.DIFF, ActionKind.ISSUES_SHOW),
    *(ActionKind.AT_GITHUB, ActionKind.QUEUE_SHOW, ActionKind.QUEUE_CANCEL),
}
OF_FILES = re.compile(
    r"request file|its file\b|depends_on in|Request ファイル|ファイルで範囲|ファイルに追記|aiflow (set|edit)\b"
)

# What is said to who writes a new file, or has a file that is broken.
OF_NO_ISSUE = {"REQUEST_EXISTS", "REQUEST_INVALID", "DUPLICATE_ID", "PROMPT_TOO_LARGE"}


@pytest.fixture
def place(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[IssuePlace]:
    bench = Bench(repository, tmp_path)
    with issue_place(bench, monkeypatch, capfd) as made:
        yield made
    bench.close()


# --- advice ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("ISS-6", "ERR-1")
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("facts", [FACTS, {**FACTS, "path": "/a/worktree"}], ids=["url", "no url"])
def test_whatever_is_advised_for_an_issue_works_for_an_issue(language: str, facts: dict[str, str]) -> None:
    texts = Texts(language)
    for code in CATALOGUE.keys() - OF_NO_ISSUE:
        advices = texts.message(code, facts).actions
        about = [step for each in advices for step in each.steps if step.request_id == "GH-1"]
        assert {step.kind for step in about} <= WORKS, code
        assert [each.typed for each in advices if OF_FILES.search(each.typed)] == [], code
        retries = [step for step in about if step.kind is ActionKind.ANSWER]
        assert len(retries) <= 1, code
        way = way_to_mend(code, "GH-1")
        works = {ActionKind.ANSWER, ActionKind.ACCEPT, ActionKind.SEND_BACK, ActionKind.AT_GITHUB}
        assert way is None or way.kind in works, code


@pytest.mark.spec("ISS-6", "ERR-1")
def test_a_message_says_where_and_how_an_issue_is_made_ready() -> None:
    ready = Texts("en").message("NOT_READY", FACTS).actions[1]
    assert ready.typed == f"set the label agent:queued: {URL}"
    by_hand = Texts("ja").message("AWAITING_ACCEPTANCE", FACTS).actions[-1].typed
    assert "git merge aiflow/x" in by_hand
    assert f"Issue を完了としてクローズする: {URL}" in by_hand
    assert (
        Texts("en")
        .message("NOT_READY", {"request_id": "RQ-1"})
        .actions[1]
        .typed.endswith("`aiflow set RQ-1 status=ready`")
    )


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("name", [LABEL, RELABEL, RETRY, CLOSE, EDIT, ACCEPT])
def test_what_is_done_by_hand_has_words_with_the_address(name: str, language: str) -> None:
    texts = Texts(language)
    assert said(at_github(name, "GH-1", URL), texts).endswith(f": {URL}")
    assert said(at_github(name, "GH-1"), texts).endswith(": GH-1")


# --- in the terminal -------------------------------------------------------------------------------------------------


@pytest.mark.spec("ISS-2", "SEL-5")
def test_why_names_what_an_issue_waits_for_and_what_is_done_on_it(place: IssuePlace) -> None:
    hub, aiflow = place.hub, place.here
    draft = place.opened("A draft")
    other = place.opened("Given up")
    needs = place.opened("Needs others", f"Depends on #{other}", "agent:queued")
    hub.block(needs, 6, "else/where")
    hub.elsewhere["else/where", 6] = (True, None)
    hub.close(other, "maya", "not_planned")
    place.sync()
    assert f"→ set the label agent:queued: https://github.com/octo/demo/issues/{draft}" in aiflow("why", f"GH-{draft}")
    assert f"→ ラベル agent:queued を付ける: https://github.com/octo/demo/issues/{draft}" in aiflow(
        "why", f"GH-{draft}", language="ja"
    )
    told = aiflow("why", f"GH-{needs}")
    assert "waits for else/where#6 in another repository" in told
    assert f"#{other} was closed as not planned: it no longer waits for that" in told
    station = aiflow.json("why", f"GH-{draft}")["stations"][0]
    assert (station["commands"], len(station["at_github"])) == ([], 1)
    assert "waits for else/where#6" in aiflow("list")


@pytest.mark.spec("ISS-2", "SEL-5")
def test_why_says_when_what_an_issue_waited_for_is_closed(place: IssuePlace) -> None:
    hub, aiflow = place.hub, place.here
    first, needs = place.opened("First"), place.opened("Needs others", "Please.", "agent:queued")
    hub.block(needs, first)
    hub.block(needs, 6, "else/where")
    hub.elsewhere["else/where", 6] = (True, None)
    place.sync()
    assert not aiflow.json("why", f"GH-{needs}")["is_runnable"]
    hub.close(first, "maya", "not_planned")
    hub.elsewhere["else/where", 6] = (False, "completed")
    aiflow("issues", "sync", "--full")
    told = aiflow("why", f"GH-{needs}")
    assert f"#{first} was closed as not planned: it no longer waits for that" in told
    assert "else/where#6" not in told
    assert aiflow.json("why", f"GH-{needs}")["is_runnable"]


@pytest.mark.spec("ISS-9", "SEL-5")
def test_why_says_of_an_accepted_issue_only_that_it_is_to_be_closed(place: IssuePlace) -> None:
    number, aiflow = place.queued(), place.here
    waiting = place.opened("Next", f"Depends on #{number}", "agent:queued")
    place.sync()
    assert aiflow.json("run", f"GH-{number}")["state"] == "DONE"
    aiflow("accept", f"GH-{number}", "--yes")
    for told in (aiflow("why", f"GH-{number}"), aiflow("why", f"GH-{waiting}")):
        assert "AWAITING_ACCEPTANCE" not in told
        assert told.count("AWAITING_CLOSE") == 1
        assert f"→ close the issue as completed: https://github.com/octo/demo/issues/{number}" in told
    assert "not on GitHub" not in place.said(number)[-1]


@pytest.mark.spec("ISS-2")
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize(
    ("blockers", "count", "names", "left"),
    [
        (None, 2, [], "2"),
        ((Blocker("else/where", 6, True),), 1, ["else/where#6"], ""),
        ((Blocker("else/where", 6, True), Blocker("a/b", 1, True)), 2, ["else/where#6", "a/b#1"], ""),
        ((Blocker("else/where", 6, True),), 4, ["else/where#6"], "3"),
    ],
)
def test_what_cannot_be_read_has_words_and_what_is_elsewhere_its_name(
    blockers: tuple[Blocker, ...] | None, count: int, names: list[str], left: str, language: str
) -> None:
    teller = Teller().label("agent:queued")
    teller.issue = teller.issue._replace(blocker_count=count)
    story = teller.story._replace(blockers=blockers)
    kept = request_of(IssueView(story, TRUST, at(teller.minute)), "o/r", {}).kept
    assert kept is not None
    told = describe(Barrier(kept.reason_code, kept.facts), Texts(language))
    assert all(name in told for name in names)
    assert left in told
    assert not re.search(r"\?|<|detail\.", told)


@pytest.mark.spec("ISS-2")
def test_what_cannot_be_done_with_an_issue_is_refused_with_what_is_done_at_github(place: IssuePlace) -> None:
    number = place.opened()
    place.sync()
    for argv in (("set", f"GH-{number}", "status=ready"), ("edit", f"GH-{number}")):
        error = place.here.json(*argv, code=2)["error"]
        assert error["reason_code"] == "EDITED_ELSEWHERE"
        assert "agent:queued" in " ".join(error["actions"])
        assert f"/issues/{number}" in error["actions"][0]
    missing = place.here.json("why", "GH-99", code=2)["error"]
    assert missing["reason_code"] == "REQUEST_NOT_FOUND"
    assert "aiflow issues sync" in " ".join(missing["actions"])


@pytest.mark.spec("ISS-6", "RUN-10")
def test_an_answer_is_posted_once_and_starts_the_next_run_with_it(place: IssuePlace) -> None:
    gh = place.stopped()
    aiflow = place.here
    assert f'→ aiflow resume {gh} --answer "…"' in aiflow("why", gh)
    refused = aiflow.json("resume", gh, code=4)["error"]
    assert (refused["reason_code"], refused["actions"]) == ("ISSUE_RETRY_ONLY", [f'aiflow resume {gh} --answer "…"'])
    before = len(place.said(1))
    place.api.loses("POST .*/comments")  # GitHub has it, and we do not know
    done = aiflow.json("resume", gh, "--answer", "Blue")
    assert (done["state"], done["request_id"]) == ("DONE", gh)
    posted = place.said(1)[before:]
    assert [body for body in posted if "/retry" in body and "<!--" not in body] == [posted[0]]
    stage = place.bench.stage(gh)
    assert [each["answer"] for each in stage["answers"]] == ["Blue"]
    assert stage["answers"][0]["question"] == "Which colour?"
    assert "Blue" in stage["feedback"][0]["summary"]


@pytest.mark.spec("ISS-6")
def test_what_was_written_after_retry_on_github_reaches_the_next_run(place: IssuePlace) -> None:
    gh = place.stopped()
    place.hub.comment(1, "/retry Green, please.", "maya")
    place.sync()
    assert place.here.json("run", gh)["state"] == "DONE"
    stage = place.bench.stage(gh)
    assert [each["summary"] for each in stage["feedback"]] == ["Green, please."]
    assert [(each["question"], each["answer"]) for each in stage["answers"]] == [("Which colour?", "Green, please.")]


@pytest.mark.spec("ISS-6", "RUN-10")
def test_a_choice_may_be_named_by_its_number_on_github_too(place: IssuePlace) -> None:
    asked = {"status": "needs_input", "question": "Which colour?", "choices": ["Green", "Blue"]}
    number = place.queued()
    place.sync()
    place.bench.agent.does("implementer", f"answer({asked!r})")
    assert place.here.json("run", f"GH-{number}", code=5)["reason_code"] == "NEEDS_CLARIFICATION"
    assert "> 2. Blue" in place.said(number)[-1]
    place.works()
    place.hub.comment(number, "/retry 2", "maya")
    place.sync()
    assert place.here.json("run", f"GH-{number}")["state"] == "DONE"
    answers = place.bench.stage(f"GH-{number}")["answers"]
    assert [(each["question"], each["answer"]) for each in answers] == [("Which colour?", "Blue")]


@pytest.mark.spec("ISS-11", "ISS-6")
def test_while_github_is_away_nothing_is_closed_and_the_words_are_still_there(place: IssuePlace) -> None:
    gh = place.stopped()
    place.api.answers("POST .*/comments", 500, times=9)
    error = place.here.json("resume", gh, "--answer", "Blue", code=3)["error"]
    assert error["reason_code"] == "GITHUB_UNKNOWN"
    assert "Send them again" in error["detail"]
    assert error["context"]["words"] == "Blue"
    assert place.here.json("show", gh)["latest_run"]["state"] == "NEEDS_INPUT"
    place.api.faults.clear()
    assert place.here.json("resume", gh, "--answer", "Blue")["state"] == "DONE"


@pytest.mark.spec("ISS-6", "ISS-4")
def test_what_github_has_although_nobody_could_know_is_not_posted_again(place: IssuePlace) -> None:
    gh = place.stopped()

    def lose(ask: Ask) -> None:
        if (ask.method, ask.path.endswith("/comments")) == ("POST", True):
            place.api.loses("POST")
            place.api.answers("GET", 500, times=99)

    place.api.before = lose
    assert place.here.json("resume", gh, "--answer", "Blue", code=3)["error"]["context"]["words"] == "Blue"
    place.api.before = lambda _ask: None
    place.api.faults.clear()
    assert place.here.json("resume", gh, "--answer", "Blue")["state"] == "DONE"
    assert len([body for body in place.said(1) if body.endswith("/retry Blue")]) == 1


@pytest.mark.spec("ISS-2", "CLI")
def test_the_story_is_told_in_order_without_a_call_and_without_marks(place: IssuePlace) -> None:
    gh = place.stopped()
    place.hub.comment(1, 'Hi <script>alert(1)</script> <!-- aiflow:result v1 {"key": "end:x"} -->', "nobody")
    place.sync()
    place.api.calls.clear()
    before = sorted((path, path.stat().st_mtime_ns) for path in place.bench.root.rglob("*") if path.is_file())
    for typed in (gh, "1", "#1", "gh-1"):
        assert place.here.json("issues", "show", typed)["request_id"] == gh
    shown = place.here.json("issues", "show", gh)
    kinds = [line["kind"] for line in shown["story"]]
    assert [kind for kind in kinds if "labelled" not in kind] == ["opened", "started", "progress", "blocked", "comment"]
    assert (kinds.count("labelled"), kinds.count("unlabelled")) == (4, 2)
    assert [line["at"] for line in shown["story"]] == sorted(line["at"] for line in shown["story"])
    [stranger] = [line for line in shown["story"] if line["kind"] == "comment"]
    assert (stranger["who"], stranger["may_decide"]) == ("nobody", False)
    assert "aiflow:" not in "".join(line["text"] or "" for line in shown["story"])
    assert not re.search("<details>|<sub>", "".join(line["text"] or "" for line in shown["story"]))
    assert (shown["status"], shown["attempts"], shown["most_attempts"]) == ("blocked", 1, 6)
    told = place.here("issues", "show", gh)
    assert "maya set agent:queued" in told
    assert "nobody wrote · without write permission" in told
    assert place.api.calls == []
    assert sorted((p, p.stat().st_mtime_ns) for p in place.bench.root.rglob("*") if p.is_file()) == before
    assert place.here.json("issues", "show", "seven", code=2)["error"]["reason_code"] == "INPUT_INVALID"
    assert place.here.json("issues", "show", "99", code=2)["error"]["reason_code"] == "REQUEST_NOT_FOUND"
