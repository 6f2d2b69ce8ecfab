"""A run's page (WEB-1): every state with its reason and its ways on, in both languages, with and without a script."""

from __future__ import annotations

import html
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import pytest

import fresh_git
from aiflow.domain.agents.judging import Criterion
from aiflow.domain.request import RequestId
from aiflow.domain.runs.log_names import BASELINE_LOG
from aiflow.domain.runs.run import Run
from aiflow.domain.runs.step_record import Review
from aiflow.usecases.server.start_work import Begun, WorkOrder
from real_engine import engine_at
from run_builders import why
from run_page_runs import HOSTILE, MADE, NEWER, REQUESTS, WORKED_ON, id_of, path_of, worked_on, write_log, write_run
from server_yard import Answer, Served, served

pytestmark = pytest.mark.spec("WEB-1")

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SCRIPT = {"HX-Request": "true"}


class Ordered:
    """Takes orders instead of starting workers."""

    def __init__(self) -> None:
        self.orders: list[WorkOrder] = []

    def start(self, order: WorkOrder) -> Begun:
        """Note what was asked for."""
        self.orders.append(order)
        return Begun(order.request_id, "RUN-20260104-000000-cccccc", 1)

    @property
    def argv(self) -> tuple[str, ...]:
        """What the last worker would have been told."""
        return self.orders[-1].argv


@pytest.fixture
def up(repository: Path) -> Iterator[Served]:
    (repository / "todo.py").write_text("one\ntwo\n")
    assert fresh_git.commit_first(repository, ["todo.py"], "Begin")
    with served(repository, auth="none") as given:
        given.server.work = Ordered()  # type: ignore[assignment]
        yield given


def git(root: Path, *words: str) -> str:
    told = subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True)
    return told.stdout.strip()


def root_of(up: Served) -> Path:
    return Path(up.server.record.root)


def get(up: Served, path: str, language: str = "en", **headers: str) -> str:
    answer = up.call("GET", path, {"Cookie": f"aiflow_lang={language}", **headers})
    assert answer.status == 200, answer.body.decode()[-400:]
    return answer.body.decode()


def post(up: Served, path: str, fields: Mapping[str, object] = {}, *, is_script: bool = False) -> Answer:
    headers = {**FORM, "Origin": up.origin, **(SCRIPT if is_script else {})}
    return up.call("POST", path, headers, urlencode(fields, doseq=True).encode())


class Reader(HTMLParser):
    """What a browser makes of a page: tags with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def having(self, name: str) -> list[str]:
        """Return every value of an attribute."""
        return [attributes[name] for _, attributes in self.tags if name in attributes]


def panel_of(page: str) -> str:
    return page[page.index('<section class="reason') : page.index('<div class="panes">')]


@pytest.mark.parametrize("name", MADE)
def test_every_state_has_its_page(up: Served, name: str) -> None:
    run = write_run(root_of(up), name)
    held = [name] if name in WORKED_ON else []
    with worked_on(root_of(up), *held):
        pages = {language: get(up, path_of(name), language) for language in ("en", "ja")}
    for language, page in pages.items():
        _is_whole(page, run, language, is_held=bool(held))


def _is_whole(page: str, run: Run, language: str, *, is_held: bool) -> None:
    reader = Reader(page)
    assert run.run_id in reader.text
    assert not re.search(r"web\.(run|way)\.", page)
    assert not re.search(r"<\w+>", reader.text.replace("<script>", ""))  # a fact that a text asked for and did not get
    code = run.error.reason_code if run.error else None
    assert code is None or f'class="rc">{code}<' in page
    assert page.count("btn--go") <= 3  # one way is recommended: in its panel, on a phone in the dock
    assert (">LOCKED<" in page) is is_held
    assert (language == "ja") == ('lang="ja"' in page.partition("<head>")[0])


@pytest.mark.spec("RUN-8")
@pytest.mark.parametrize("name", ["tests_failed", "retried_out", "settings", "done", "conflicting", "failed"])
def test_the_morning_offers_the_same_in_the_same_words(up: Served, name: str) -> None:
    write_run(root_of(up), name)
    buttons = re.compile(r'<(?:a|button) class="(btn(?: btn--go)?)"[^>]*>.*?</svg>([^<]+)</')
    for language in ("en", "ja"):
        there = buttons.findall(panel_of(get(up, path_of(name), language)))
        morning = get(up, "/", language)
        item = morning[morning.index(f'id="wait-{REQUESTS[name]}"') :].partition("</li>")[0]
        assert len(there) > 1
        assert buttons.findall(item) == there


@pytest.mark.parametrize("view", ["log", "diff", "report", "plan"])
def test_every_view_and_step_has_an_address(up: Served, view: str) -> None:
    write_run(root_of(up), "tests_failed")
    for step in ("plan", "S01", "s02", "S03", "report", "nonsense"):
        page = get(up, f"{path_of('tests_failed')}?step={step}&view={view}")
        assert re.search(rf'href="[^"]*view={view}" aria-current="page"', page)
    links = Reader(get(up, f"{path_of('tests_failed')}?step=S02&view={view}")).having("href")
    assert f"{path_of('tests_failed')}?step=S01&view={'log' if view in ('report', 'plan') else view}" in links


def test_a_run_that_is_not_there_is_said_to_be_missing(up: Served) -> None:
    write_run(root_of(up), "done")
    for path in ("/requests/RQ-9/runs/RUN-1", f"/requests/RQ-99/runs/{id_of('done')}"):
        answer = up.call("GET", path)
        assert (answer.status, answer.reason) == (404, "RUN_NOT_FOUND")
        assert b"<main" in answer.body


def test_the_cause_leads_and_both_codes_are_named(up: Served) -> None:
    write_run(root_of(up), "over_the_limit")
    panel = panel_of(get(up, path_of("over_the_limit")))
    assert re.findall(r'class="rc">(\w+)<', panel) == ["RETRY_LIMIT_EXCEEDED", "UNIT_TEST_FAILED"]
    assert "Unit tests failed" in panel


def test_retries_are_counted_and_a_new_plan_warns(up: Served) -> None:
    write_run(root_of(up), "tests_failed")
    page = get(up, path_of("tests_failed"))
    assert "0 of 3 retries used." in page
    assert "Closes this run and starts a new one." in page
    assert "S02, attempt 2 of 2" in page
    assert 'value="resume keep_changes"' in page  # what a person corrected by hand is kept
    assert "review ✕" in page
    assert "QA_REJECTED" in page


@pytest.mark.spec("RUN-17")
def test_a_red_base_has_a_stage_and_a_log_of_its_own_and_can_be_left_out(up: Served) -> None:
    run = write_run(root_of(up), "base_red")
    write_log(engine_at(root_of(up)), run, BASELINE_LOG, "unit tests: make test", "E assert 1 == 2\n")
    path = path_of("base_red")
    page = get(up, path)
    assert 'id="stage-baseline"' in page
    assert "E assert 1 == 2" in page
    assert f'data-log="{path}/logs/baseline"' in page
    assert "E assert" not in get(up, f"{path}?step=plan&view=log")
    assert 'value="resume no_baseline"' in page
    assert "If this request is to fix them, start without testing the base." in Reader(page).text
    dialog = get(up, f"{path}/resume?no_baseline=1")
    assert '<input type="hidden" name="no_baseline" value="1">' in dialog
    assert up.call("GET", f"{path}/logs/baseline", {}).status == 200
    part = json.loads(up.call("GET", f"/api{path}/logs/baseline", {}).body)
    assert (part["step"], part["text"].count("E assert 1 == 2")) == (-1, 1)


def test_both_ends_of_a_replacement_are_linked(up: Served) -> None:
    write_run(root_of(up), "replaced")
    page = get(up, path_of("replaced"))
    assert f'href="/requests/{REQUESTS["replaced"]}/runs/{NEWER}"' in panel_of(page)
    assert "replaced by" in page


def test_the_report_is_markdown_without_what_aiflow_notes_for_itself(up: Served) -> None:
    run = write_run(root_of(up), "replaced")
    engine_at(root_of(up)).runs.append_report(
        run, "# It\n\n<!-- aiflow:end 1 FAILED X -->\n## An end\n\n**Strong** words\n"
    )
    page = get(up, path_of("replaced"))
    assert "aiflow:end" not in page
    assert "<strong>Strong</strong>" in page


def test_a_quota_that_is_waited_for_is_no_stop(up: Served) -> None:
    write_run(root_of(up), "waiting")
    with worked_on(root_of(up), "waiting"):
        panel = panel_of(get(up, path_of("waiting")))
    assert "continues automatically" in panel
    assert "5-hour limit" in panel


@pytest.mark.parametrize(("code", "is_shown"), [(1, True), (None, True), (0, False)])
def test_a_command_is_shown_where_it_failed(up: Served, code: int | None, is_shown: bool) -> None:
    run = write_run(root_of(up), "tests_failed")
    error = why("AGENT_FAILED", "no answer", command="claude -p", exit_code=code, step_id="S02")
    engine_at(root_of(up)).runs.save(replace(run, error=error))
    panel = panel_of(get(up, path_of("tests_failed")))
    assert ("claude -p" in panel) is is_shown
    assert ("exit code" in panel) is bool(code)
    asks = replace(error, question="Which one?", evidence=replace(error.evidence, exit_code=1))
    engine_at(root_of(up)).runs.save(replace(run, error=asks))
    assert "claude -p" not in panel_of(get(up, path_of("tests_failed")))


class TestFinished:
    """What the panel says of a run that waits for its acceptance."""

    def test_tests_passed_and_the_base_stands_where_it_was(self, up: Served) -> None:
        write_run(root_of(up), "done")
        words = Reader(panel_of(get(up, path_of("done")))).text
        assert "Tests passed" in words
        assert "main has not moved" in words
        assert "Merges into main. No tests are set." in words

    def test_the_base_has_moved(self, up: Served) -> None:
        run = write_run(root_of(up), "done")
        (root_of(up) / "aiflow.toml").write_text("[tests]\nunit = 'true'\n")
        git(root_of(up), "commit", "-q", "--allow-empty", "-m", "Go on")
        words = Reader(panel_of(get(up, path_of("done")))).text
        assert "main has moved since: accepting merges on top of it" in words
        assert "Runs the tests on the merge, then merges into main." in words
        merged = replace(run.steps["S03"], merges=git(root_of(up), "rev-parse", "HEAD"))
        engine_at(root_of(up)).runs.save(replace(run, steps={**run.steps, "S03": merged}))
        assert "main has not moved" in get(up, path_of("done"))

    def test_the_acceptance_criteria_are_counted_and_what_is_open_stands_out(self, up: Served) -> None:
        run = write_run(root_of(up), "done")
        assert "Acceptance criteria" not in get(up, path_of("done"))
        for last, told, is_open in ((True, "2 of 2", False), (None, "1 of 2", True), (False, "1 of 2", True)):
            criteria = (Criterion(1, "It greets", is_met=True), Criterion(2, "<b>", is_met=last))
            record = replace(run.steps["S03"].record, reviews=(Review(is_passed=True, criteria=criteria),))
            work = replace(run.steps["S03"], record=record)
            engine_at(root_of(up)).runs.save(replace(run, steps={**run.steps, "S03": work}))
            [line] = re.findall(r'<p class="ev" id="criteria">(.*?)</p>', get(up, path_of("done")))
            assert f"Acceptance criteria met: {told}" in line
            assert ("is-wait" in line) is is_open

    def test_what_is_not_known_is_not_said(self, up: Served) -> None:
        run = write_run(root_of(up), "done")
        engine = engine_at(root_of(up))
        steps = {step_id: replace(work, calls={"implementer": 1}) for step_id, work in run.steps.items()}
        engine.runs.save(replace(run, steps=steps, place=replace(run.place, base_branch="gone")))
        words = Reader(panel_of(get(up, path_of("done")))).text
        assert "No tests were run" in words
        assert "has moved" not in words
        assert "has not moved" not in words

    def test_an_acceptance_that_failed_says_nothing_of_earlier_tests(self, up: Served) -> None:
        write_run(root_of(up), "conflicting")
        panel = panel_of(get(up, path_of("conflicting")))
        assert "Tests passed" not in panel
        write_run(root_of(up), "accepted")
        panel = panel_of(get(up, path_of("accepted")))
        assert "Tests passed" in panel
        assert "moved" not in panel


def test_a_run_whose_process_died_says_so(up: Served) -> None:
    write_run(root_of(up), "running")
    panel = panel_of(get(up, path_of("running")))
    assert ">PROCESS_CRASHED<" in panel
    assert 'name="mode" value="resume"' in panel


class TestHostileWords:
    """Everything that an agent, a file or a person of the backlog can name."""

    @pytest.mark.parametrize("language", ["en", "ja"])
    @pytest.mark.parametrize("view", ["log", "diff", "report", "plan"])
    def test_they_are_text(self, up: Served, view: str, language: str) -> None:
        run = write_run(root_of(up), "hostile")
        engine = engine_at(root_of(up))
        write_log(engine, run, 1, "implementer S01 attempt 1", f"{HOSTILE}\n")
        engine.runs.append_report(run, f"{HOSTILE}\n\n[x](javascript:alert(1))\n")
        reader = Reader(get(up, f"{path_of('hostile')}?step=S01&view={view}", language))
        assert HOSTILE in reader.text
        assert not [tag for tag, _ in reader.tags if tag == "img"]
        assert all(a.get("src", "").startswith("/static/") for tag, a in reader.tags if tag == "script")
        assert not [
            name for _, attributes in reader.tags for name in attributes if name.startswith("on") or name == "style"
        ]
        assert not [link for link in reader.having("href") if link.lower().startswith(("javascript:", "data:"))]

    def test_a_question_and_its_choices_are_what_was_asked(self, up: Served) -> None:
        write_run(root_of(up), "hostile")
        reader = Reader(get(up, path_of("hostile")))
        values = [a["value"] for tag, a in reader.tags if a.get("name") == "choice"]
        assert values == [HOSTILE, "javascript:alert(1)"]

    def test_names_of_files_are_text(self, up: Served) -> None:
        name = "<img src=x onerror=alert(1)>.py"
        write_run(root_of(up), "done")
        _commit_as_work(up, "done", {name: "</script><script>alert(1)</script>\n"})
        reader = Reader(get(up, f"{path_of('done')}?view=diff"))
        assert name in reader.text
        assert name in reader.having("data-path")
        assert "</script><script>alert(1)</script>" in reader.text
        assert not [tag for tag, _ in reader.tags if tag == "img"]


def _commit_as_work(up: Served, name: str, files: dict[str, str]) -> None:
    """Give a run a real commit to show, as the work of its last step."""
    root = root_of(up)
    for path, text in files.items():
        (root / path).write_text(text)
    git(root, "add", "--", *files)
    git(root, "commit", "-qm", "Work")
    commit = git(root, "rev-parse", "HEAD")
    stage = next((root / "runs" / REQUESTS[name]).glob("*/stage.json"))
    kept = stage.read_text()
    stage.write_text(kept.replace("commit-3", commit))


class TestDiff:
    def test_it_has_every_file_with_numbers_and_signs(self, up: Served) -> None:
        write_run(root_of(up), "done")
        _commit_as_work(up, "done", {"todo.py": "one\n2\n", "new.py": "x\n" * 500})
        page = get(up, path_of("done"))
        assert "Files: 2" in page
        assert "+501" in page
        assert page.count('<details class="file"') == 2
        assert page.count('<details class="file" id="') - page.count(" open><summary") == 1  # over 400 lines: closed
        assert 'data-path="todo.py"' in page
        assert '<td class="sg">−</td>' in page
        assert "data-commented" in page

    def test_commits_that_are_gone_are_said_to_be(self, up: Served) -> None:
        write_run(root_of(up), "done")
        assert "no longer in the repository" in get(up, f"{path_of('done')}?view=diff")

    def test_a_step_is_shown_alone(self, up: Served) -> None:
        write_run(root_of(up), "done")
        _commit_as_work(up, "done", {"todo.py": "one\n2\n"})
        page = get(up, f"{path_of('done')}?view=diff&step=S01")
        assert "All changes" in page


class TestLog:
    def test_a_page_that_fetches_itself_again_asks_for_the_view_that_is_read(self, up: Served) -> None:
        write_run(root_of(up), "running")
        with worked_on(root_of(up), "running"):
            app = next(a for _, a in Reader(get(up, path_of("running"))).tags if a.get("id") == "app")
            chosen = next(a for _, a in Reader(get(up, f"{path_of('running')}?step=S01")).tags if a.get("id") == "app")
        assert app["hx-get"] == f"{path_of('running')}?view=log"  # at the step where it then is
        assert chosen["hx-get"] == f"{path_of('running')}?step=S01&view=log"

    def test_without_a_script_its_end_is_there(self, up: Served) -> None:
        run = write_run(root_of(up), "tests_failed")
        lines = "".join(f"line {number}\n" for number in range(20_000))
        write_log(engine_at(root_of(up)), run, 2, "implementer S02 attempt 1", lines)
        page = get(up, path_of("tests_failed"))
        assert "line 19999" in page
        assert "line 19000<" not in page
        assert 'logs/2?format=text"' in page
        assert len(page) < 120_000

    def test_a_log_has_its_colours_on_the_page_and_nowhere_else(self, up: Served) -> None:
        run = write_run(root_of(up), "tests_failed")
        text = "\x1b[31mred <b>\x1b[0m \x1b]8;;javascript:alert(1)\x07x\n"
        write_log(engine_at(root_of(up)), run, 2, "implementer S02 attempt 1", text)
        page = get(up, path_of("tests_failed"))
        assert '<span class="ansi-1">red &lt;b&gt;</span> x' in page
        viewed = json.loads(up.call("GET", f"{path_of('tests_failed')}/logs/2").body)
        assert viewed["lines"][1] == "\x1b[31mred <b>\x1b[0m x"
        assert viewed["times"][0][0] == 0
        for form in ("json", "text"):
            raw = up.call("GET", f"/api{path_of('tests_failed')}/logs/2?format={form}").body.decode()
            assert "red <b> x" in raw
            assert "[31m" not in raw
        assert up.call("GET", f"{path_of('tests_failed')}/logs/9").status == 422
        assert up.call("GET", f"{path_of('tests_failed')}/logs/2?count=-1").status == 422

    def test_a_script_that_fetches_the_page_again_does_not_get_the_log_again(self, up: Served) -> None:
        run = write_run(root_of(up), "tests_failed")
        write_log(engine_at(root_of(up)), run, 2, "implementer S02 attempt 1", "a line of the log\n")
        assert "a line of the log" in get(up, path_of("tests_failed"))
        assert "a line of the log" not in get(up, path_of("tests_failed"), **SCRIPT)

    def test_the_viewer_knows_where_it_is_and_has_its_words(self, up: Served) -> None:
        write_run(root_of(up), "tests_failed")
        for language in ("en", "ja"):
            page = get(up, path_of("tests_failed"), language)
            box = next(a for _, a in Reader(page).tags if "data-log" in a)
            assert box["data-log"] == f"{path_of('tests_failed')}/logs/2"
            words = json.loads(box["data-words"])
            assert "{n}" in words["failures"]
            assert not [word for word in words.values() if word.startswith("web.") or "<" in word]
            assert "hx-morph-skip" in box

    def test_bytes_that_are_no_text_do_not_break_it(self, up: Served) -> None:
        run = write_run(root_of(up), "tests_failed")
        write_log(engine_at(root_of(up)), run, 2, "implementer S02 attempt 1", b"\xff\xfe\x00 \xe3\x81\n")
        get(up, path_of("tests_failed"))


class TestDeeds:
    @pytest.mark.parametrize(
        ("name", "fields", "typed"),
        [
            ("tests_failed", {"mode": "retry_step"}, ("retry-step", "--", "{run}")),
            ("tests_failed", {"mode": "resume keep_changes"}, ("resume", "--keep-changes", "--", "{run}")),
            ("retried_out", {"mode": "resume", "force": "1"}, ("resume", "--force", "--", "{run}")),
            ("base_red", {"mode": "resume no_baseline"}, ("resume", "--no-baseline", "--", "{run}")),
            ("base_red", {"mode": "resume", "no_baseline": "1"}, ("resume", "--no-baseline", "--", "{run}")),
            ("retried_out", {"mode": "replan"}, ("replan", "--", "{run}")),
            ("conflicting", {"mode": "resume update"}, ("resume", "--update", "--", "{run}")),
            ("question", {"ask": "1", "choice": "late"}, ("resume", "--answer=late", "--", "{run}")),
            (
                "question",
                {"ask": "1", "choice": "late", "answer": "--force"},
                ("resume", "--answer=--force", "--", "{run}"),
            ),
            ("question", {"ask": "1", "mode": "retry_step"}, ("retry-step", "--", "{run}")),
        ],
    )
    def test_a_button_is_the_command_that_a_person_would_type(
        self, up: Served, name: str, fields: dict[str, str], typed: tuple[str, ...]
    ) -> None:
        write_run(root_of(up), name)
        answer = post(up, f"{path_of(name)}/resume", fields)
        assert answer.status == 303, answer.body
        assert isinstance(up.server.work, Ordered)
        assert up.server.work.argv == tuple(word.format(run=id_of(name)) for word in typed)

    @pytest.mark.parametrize(
        "fields", [{"ask": "1"}, {"ask": "1", "answer": "  "}, {"mode": "sudo"}, {"mode": "resume x"}]
    )
    def test_what_makes_no_sense_is_refused_in_place(self, up: Served, fields: dict[str, str]) -> None:
        write_run(root_of(up), "question")
        answer = post(up, f"{path_of('question')}/resume", fields, is_script=True)
        assert (answer.status, answer.reason) == (422, "INPUT_INVALID")
        assert isinstance(up.server.work, Ordered)
        assert up.server.work.orders == []

    def test_every_button_of_a_page_leads_somewhere(self, up: Served) -> None:
        for name in MADE:
            write_run(root_of(up), name)
        for name in MADE:
            page = panel_of(get(up, path_of(name)))
            for link in re.findall(r'<a class="btn[^"]*" href="([^"]+)" data-dialog', page):
                for headers in ({}, SCRIPT):
                    dialog = up.call("GET", html.unescape(link), headers)
                    assert dialog.status == 200, link
                    assert b"<form" in dialog.body

    def test_a_closed_runs_request_can_be_made_ready(self, up: Served) -> None:
        write_run(root_of(up), "failed")
        path = f"/requests/{REQUESTS['failed']}/set"
        assert f'formaction="{path}" name="status" value="ready"' in get(up, path_of("failed"))
        answer = post(up, path, {"status": "ready"}, is_script=True)
        assert answer.status == 200
        engine = engine_at(root_of(up))
        assert engine.source.load(RequestId(REQUESTS["failed"])).status == "ready"
        assert 'formaction="/requests/' in get(up, path_of("failed"))
        assert "Run now" in get(up, path_of("failed"))

    def test_force_is_asked_for_and_says_what_it_costs(self, up: Served) -> None:
        write_run(root_of(up), "retried_out")
        panel = panel_of(get(up, path_of("retried_out")))
        assert 'value="resume"' not in panel
        link = html.unescape(re.findall(r'href="([^"]*force=1)"', panel)[0])
        dialog = up.call("GET", link, SCRIPT).body.decode()
        assert 'name="force"' in dialog
        assert "A new plan is recommended." in dialog

    def test_comments_on_lines_are_sent_back_with_their_places(self, up: Served) -> None:
        run = write_run(root_of(up), "done")
        fields = {"line_path": ["a.py", "b.py", "c.py"], "line_number": ["3", "7", "9" * 5000], "comment": ""}
        fields |= {"line_text": ["Why?", "No.", "Where?"], "line_quote": ["  x = `y`\n"]}
        answer = post(up, f"/requests/{REQUESTS['done']}/send-back", fields, is_script=True)
        assert answer.status == 200, answer.body
        text = (root_of(up) / "requests" / f"{REQUESTS['done']}.md").read_text()
        # What stands there is known behind a merge of the base too; else the commit that the number counts in.
        assert "a.py:3: Why? (at `x = 'y'`)" in text
        assert f"b.py:7: No. (in {run.tip[:12]})" in text


@pytest.mark.spec("RUN-18")
def test_a_request_can_be_run_without_plan_and_review(up: Served) -> None:
    (root_of(up) / "requests").mkdir(exist_ok=True)
    (root_of(up) / "requests/NEW-1.md").write_text("---\nstatus: ready\n---\n\n# New\n")
    assert 'action="/requests/NEW-1/run?quick=1"' in get(up, "/requests/NEW-1")
    assert post(up, "/requests/NEW-1/run?quick=1").status == 303
    assert isinstance(up.server.work, Ordered)
    assert up.server.work.argv == ("run", "--quick", "--", "NEW-1")


@pytest.mark.spec("ISS-9")
@pytest.mark.parametrize(("url", "is_shown"), [("https://github.com/octo/demo/pull/2", True), ("javascript:x", False)])
def test_a_run_that_has_a_pull_request_links_to_it(up: Served, url: str, is_shown: bool) -> None:
    run = write_run(root_of(up), "done")
    engine_at(root_of(up)).runs.save(replace(run, pull_url=url))
    assert (
        f'<a class="link" href="{url}" rel="noopener noreferrer">Pull request</a>' in get(up, path_of("done"))
    ) is is_shown


@pytest.mark.parametrize(
    ("name", "advised", "not_again"),
    [
        ("settings", "Correct the key named above", "Resume</a>"),
        ("retried_out", 'href="/doctor">Check that the agent is installed and works<', "See the agent's last output"),
        ("too_large", "narrow it or split it", "Make a new plan with smaller steps<"),
    ],
)
def test_what_is_advised_and_has_no_button_is_said_too(up: Served, name: str, advised: str, not_again: str) -> None:
    write_run(root_of(up), name)
    [told] = re.findall(r'<ul class="advice">.*?</ul>', panel_of(get(up, path_of(name))))
    assert advised in told
    assert not_again not in told


def test_resuming_with_changes_says_that_they_are_kept_whatever_stopped_the_run(up: Served) -> None:
    for name in ("tests_failed", "over_the_limit"):
        write_run(root_of(up), name)
        assert "If you corrected the files in the run&#39;s worktree yourself" in panel_of(get(up, path_of(name)))


@pytest.mark.parametrize(("name", "mark"), [("planning", "pause"), ("auto_cut_off", "pause"), ("cancelled", "stopped")])
def test_no_step_of_a_run_that_rests_looks_as_if_it_ran_or_failed(up: Served, name: str, mark: str) -> None:
    write_run(root_of(up), name)
    page = get(up, path_of(name))
    steps = page[page.index('id="steps"') : page.index('id="pane-')]
    assert f'"#s-{mark}"' in steps
    assert '"#s-run"' not in steps
    assert "✕" not in steps  # nobody made a mistake
    assert (name == "cancelled") == ('"#s-stopped"' in steps)


def test_a_run_that_is_over_without_a_report_promises_none(up: Served) -> None:
    write_run(root_of(up), "failed")
    page = get(up, f"{path_of('failed')}?view=report")
    assert "This run has no report." in page
    assert "There is no report yet" not in page


@pytest.mark.parametrize("name", ["planning", "replaced"])
def test_the_panel_says_nothing_twice(up: Served, name: str) -> None:
    write_run(root_of(up), name)
    assert '<p class="seen">' not in panel_of(get(up, path_of(name)))
