"""The pages (WEB-1, WEB-2): drawn by the server in both languages, with what a person needs to decide."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from aiflow.messages import Texts
from aiflow.web import drawing
from aiflow.web.drawing import segment
from e2e.bench import Bench
from e2e.scripted_agents import plan_of
from waiting import wait_until
from web_yard import WebBench

PAGES = ("/", "/queue", "/doctor", "/activity", "/keys", "/auto/start", "/settings", "/agents")
ASKS = "answer({'status': 'needs_input', 'question': 'Which <b>word</b>?', 'choices': ['late', '<i>due</i>']})"
HOSTILE = "<script>alert(1)</script>"
HANG = "(HERE / 'hangs').touch()\nwhile not (HERE / 'go').exists(): time.sleep(0.02)\ndone()"


@pytest.mark.spec("WEB-1", "WEB-3")
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_drawn_whole_in_each_language(web: WebBench, path: str, language: str) -> None:
    text = web.page(path, language=language)
    assert f'<html lang="{language}"' in text
    assert len(re.findall(r"<h1[ >]", text)) == 1
    assert "web." not in re.sub(r"<[^>]*>", "", text)
    assert not re.search(r"<[^>]+ (?:style|on\w+)=", text)
    assert not re.search(r"<script(?![^>]+src=)", text)
    assert f'id="content" lang="{language}"' in text  # also where another tab has changed the language
    assert re.search(r'id="live" [^>]*hidden', text)  # only a script makes it live
    for place in ("/settings", "/agents"):
        assert re.search(rf'<p class="rail-more">.*href="{place}"', text)


@pytest.mark.spec("WEB-3")
def test_an_id_stands_for_one_thing_on_a_page(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2", status="draft", found_in="RQ-1")
    bench.run()
    run = f"/requests/RQ-1/runs/{bench.run_ids()[0]}"
    for path in (*PAGES, "/backlog?s=all", "/backlog/graph", "/requests/RQ-1", "/requests/RQ-1/edit", "/new", run):
        ids = re.findall(r'<[^>]* id="([^"]+)"', web.page(path))
        assert len(ids) > 20
        assert sorted({each for each in ids if ids.count(each) > 1}) == [], path


@pytest.mark.spec("WEB-1")
def test_what_waits_is_answered_where_it_stands_and_goes_on(web: WebBench, bench: Bench) -> None:
    assert re.search(r'<p class="lead">No runs since <time', web.page("/"))
    bench.agent.does("implementer", ASKS)
    bench.run(code=5)
    bench.agent.forget()
    text = web.page("/")
    assert "1 waits for you" in text
    assert "Which &lt;b&gt;word&lt;/b&gt;?" in text
    assert 'value="&lt;i&gt;due&lt;/i&gt;"' in text
    [run_id] = bench.run_ids()
    path = f"/requests/RQ-1/runs/{run_id}/resume"
    status, told = web.submit(path, {"ask": "1"})
    assert status == 422
    assert "Choose an answer or write one." in told
    status, told = web.submit(path, {"ask": "1", "choice": "late"})
    assert status == 200
    assert "Answered: late. RQ-1 continues" in told
    web.until_idle()
    assert "Finished, waiting for your acceptance" in web.page("/")


@pytest.mark.spec("WEB-1")
def test_accepting_without_a_script_leads_to_the_run(web: WebBench, bench: Bench) -> None:
    bench.run()
    assert 'formaction="/requests/RQ-1/accept"' in web.page("/")
    status, told = web.submit("/requests/RQ-1/accept", has_script=False)
    assert (status, told) == (303, f"/requests/RQ-1/runs/{bench.run_ids()[0]}")
    web.until_idle()
    text = web.page("/")
    assert "Nothing is waiting for you</h1>" in text
    assert "Done since yesterday" in text


@pytest.mark.spec("WEB-2", "ERR-2")
def test_a_refusal_leads_to_the_run_that_is_in_the_way(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2")
    bench.agent.does("implementer", HANG)
    assert web.submit("/requests/RQ-1/run")[0] == 200
    [run_id] = bench.run_ids()
    for has_script in (True, False):
        status, told = web.submit("/requests/RQ-2/run", has_script=has_script)
        assert status == 409
        assert "RUN_IN_PROGRESS" in told
        assert f'href="/requests/RQ-1/runs/{run_id}"' in told
    assert f'href="/requests/RQ-1/runs/{run_id}"' in web.page("/")
    assert web.submit(f"/requests/RQ-1/runs/{run_id}/cancel")[0] == 200
    web.until_idle()
    assert "CANCELLED" in web.page("/")


@pytest.mark.spec("WEB-2")
def test_while_auto_run_is_on_every_page_says_so_and_stops_it(web: WebBench, bench: Bench) -> None:
    bench.agent.does("implementer", HANG)
    assert web.submit("/auto/start")[0] == 200
    wait_until((bench.agent.folder / "hangs").exists)
    for path in PAGES:
        text = web.page(path)
        assert "Queue running" in text
        assert 'href="/auto/stop"' in text
    [run_id] = bench.run_ids()
    for has_script in (True, False):
        status, told = web.submit("/auto/start", has_script=has_script)
        assert (status, "QUEUE_IN_PROGRESS" in told) == (409, True)
        notice = told[told.index('class="notice"') :]
        assert re.search(
            r'<form method="post" action="/auto/stop" data-act><button [^>]*name="when" value="after">', notice
        )
        assert "Stop after this run</button>" in notice
        assert f'href="/requests/RQ-1/runs/{run_id}">Go to that run' in notice
    assert "After this run" in web.page("/auto/stop")
    status, told = web.submit("/auto/stop", {"when": "now"})
    assert (status, "Auto-run is being stopped" in told) == (200, True)
    web.until_idle()
    assert "Queue running" not in web.page("/")
    assert web.submit("/auto/stop", has_script=False)[0] == 409


@pytest.mark.spec("WEB-1", "SEL-7")
def test_a_request_stands_in_one_place_of_the_morning(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2")
    bench.add_request("RQ-3", depends_on="[RQ-2]")
    bench.agent.does("implementer", HANG)
    assert web.submit("/auto/start")[0] == 200
    wait_until((bench.agent.folder / "hangs").exists)
    text = web.page("/")
    places = re.findall(r'id="(wait|run|next|not)-(RQ-\d)"', text)
    assert sorted(places) == [("next", "RQ-2"), ("not", "RQ-3"), ("run", "RQ-1")]
    [count] = re.findall(r'id="h-never">[^<]*</h2><span class="count">(\d+)<', text)
    assert count == "1"
    web.submit("/auto/stop", {"when": "now"})
    web.until_idle()


@pytest.mark.spec("WEB-1", "REQ-6a")
def test_a_finished_run_is_sent_back_with_words_only(web: WebBench, bench: Bench) -> None:
    bench.run()
    assert web.submit("/requests/RQ-1/send-back", {"comment": "  "})[0] == 422
    fields = {"comment": "More.", "line_path": "a.py", "line_number": "3", "line_text": "Why?", "fresh": ""}
    assert web.submit("/requests/RQ-1/send-back", fields)[0] == 200
    assert bench.stage()["is_dropped"] is False
    text = (bench.root / "requests/RQ-1.md").read_text()
    assert "More." in text
    assert re.search(r"^a\.py:3: Why\? \(in [0-9a-f]{12}\)$", text, re.MULTILINE)
    assert web.submit("/requests/RQ-1/send-back", {**fields, "fresh": "yes"})[0] == 200
    assert bench.stage()["is_dropped"] is True


@pytest.mark.spec("WEB-1", "SEC")
def test_what_people_write_is_text_on_every_page(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2", title=HOSTILE)
    (bench.root / "requests/RQ-2.md").write_text(f"---\nstatus: ready\n---\n# {HOSTILE}\n\n{HOSTILE}\n")
    for path in (*PAGES, f"/activity?q={HOSTILE}", f"/nothing{HOSTILE}"):
        text = web.page(path, 404 if path.startswith("/nothing") else 200)
        assert HOSTILE not in text
        assert "RQ-2" not in path or "&lt;script&gt;" in text


@pytest.mark.spec("WEB-1", "ERR-3")
def test_half_a_character_in_a_file_that_was_written_by_hand_breaks_no_page(web: WebBench, bench: Bench) -> None:
    bench.agent.does("implementer", ASKS)
    bench.run(code=5)
    [stage] = bench.root.glob("runs/RQ-1/*/stage.json")
    stage.write_text(stage.read_text().replace("Which <b>word", "Which \\ud800 <b>word"))
    assert "Which \ufffd &lt;b&gt;word" in web.page("/")
    named = json.loads(stage.read_text()) | dict.fromkeys(("base_branch", "base_commit", "continued_by"), "\ud800")
    stage.write_text(json.dumps(named))
    assert "Which \ufffd &lt;b&gt;word" in web.page(f"/requests/RQ-1/runs/{stage.parent.name}")
    assert segment("\ud800/") == "%3F%2F"


@pytest.mark.spec("WEB-1")
def test_code_in_a_steps_title_is_shown_as_code(web: WebBench, bench: Bench) -> None:
    plan = plan_of("S01")
    plan["steps"][0]["title"] = "Mend `<b>.py`"
    bench.agent.plans_exactly(plan)
    bench.run()
    for view in ("plan", "log"):
        text = web.page(f"/requests/RQ-1/runs/{bench.run_ids()[0]}?view={view}")
        assert text.count("Mend <code>&lt;b&gt;.py</code>") >= 1
        assert "`&lt;b&gt;" not in text


@pytest.mark.spec("WEB-1")
def test_a_page_that_is_not_there_is_a_page(web: WebBench) -> None:
    text = web.page("/requests/RQ-404/send-back", 404)
    assert "REQUEST_NOT_FOUND" in text
    assert 'class="rail"' in text
    assert "ROUTE_NOT_FOUND" in web.page("/nowhere", 404)


@pytest.mark.spec("WEB-3")
def test_language_and_theme_are_kept_and_nobody_is_led_away(web: WebBench) -> None:
    headers = {"Origin": "http://127.0.0.1:4310", "Content-Type": "application/x-www-form-urlencoded"}
    for came, leads in (
        ("http://127.0.0.1:4310/doctor?x=1", "/doctor?x=1"),
        ("http://evil.example/x", "/"),
        ("http://127.0.0.1:4310//evil.example", "/"),
    ):
        told = web.client.post(
            "/preferences",
            data={"lang": "ja", "theme": "dark"},
            headers={**headers, "Referer": came},
            follow_redirects=False,
        )
        assert (told.status_code, told.headers["location"]) == (303, leads)
    text = web.client.get("/doctor").text
    assert '<html lang="ja" data-theme="dark">' in text
    web.client.post("/preferences", data={"lang": "xx", "theme": "<b>"}, headers=headers)
    assert '<html lang="ja" data-theme="dark">' in web.client.get("/doctor").text


@pytest.mark.spec("WEB-1")
def test_a_page_that_did_not_change_is_not_sent_again(web: WebBench) -> None:
    first = web.client.get("/queue")
    again = web.client.get("/queue", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""


@pytest.mark.spec("WEB-1", "QUE-2")
@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "No queue store is running on this machine"), ("ja", "このマシンではキューストアが動いていません")],
)
def test_who_has_no_queue_reads_that_nothing_here_needs_one(web: WebBench, language: str, words: str) -> None:
    text = web.page("/queue", language=language)
    assert words in text
    assert Texts(language)("web.queue.what") in text
    assert "aiflow queue store start" in text


@pytest.mark.spec("WEB-1", "DOC-1")
def test_the_doctor_says_what_is_wrong_and_the_full_check_is_pressed(web: WebBench, bench: Bench) -> None:
    (bench.root / "loose.py").write_text("x = 1\n")
    bench.git("add", "loose.py")
    assert "WORKTREE_DIRTY" in web.page("/doctor")
    status, told = web.submit("/doctor", has_script=False)
    assert status == 200
    assert "Full check" in told


@pytest.mark.spec("WEB-1")
def test_first_use_says_what_to_do(web: WebBench, bench: Bench) -> None:
    for path in (bench.root / "requests").glob("*.md"):
        path.unlink()
    assert "Write down what should change." in web.page("/")


@pytest.mark.spec("WEB-1")
def test_a_page_stays_as_it_is_while_an_upgrade_replaces_its_template(
    web: WebBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = web.page("/keys")
    monkeypatch.setattr("os.path.getmtime", lambda path: 0.0)
    monkeypatch.setattr(drawing.templates().loader, "get_source", lambda *asked: ("{{ newer }}", None, lambda: True))
    assert web.page("/keys") == before


@pytest.mark.spec("WEB-3")
def test_where_npm_was_missing_the_page_says_so_and_searches_as_a_form(
    web: WebBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "backlog.js" in web.page("/backlog")
    monkeypatch.setattr(drawing, "has_htmx", lambda: False)
    text = web.page("/backlog")
    assert "This page does not update by itself." in text
    assert 'id="live"' not in text
    assert "backlog.js" not in text  # it sends no form, and fetches with what is missing


@pytest.mark.spec("WEB-3")
def test_no_field_takes_the_name_of_what_scripts_ask_a_form_for() -> None:
    # `form.id` is then the field, and what fetches the page again takes the form for another one: what was chosen is lost.
    templates = Path(drawing.__file__).parent / "templates"
    names = {name for path in templates.rglob("*.html") for name in re.findall(r'\bname="([\w-]+)"', path.read_text())}
    assert {"answer", "comment"} <= names
    assert not names & {
        "id",
        "action",
        "method",
        "attributes",
        "children",
        "nodeType",
        "parentNode",
        "tagName",
        "matches",
    }


@pytest.mark.spec("WEB-1")
@pytest.mark.parametrize(
    ("language", "missing", "waits"),
    [
        ("en", "depends on RQ-99, which does not exist", "waits for RQ-1, which is ready"),
        ("ja", "依存先 RQ-99 が存在しません", "RQ-1 を待っています（ready）"),
    ],
)
def test_the_morning_says_in_words_what_cannot_run(
    web: WebBench, bench: Bench, language: str, missing: str, waits: str
) -> None:
    bench.add_request("RQ-2", depends_on="[RQ-99]")
    bench.add_request("RQ-3", depends_on="[RQ-1]")
    text = web.page("/", language=language)
    said = {name: re.sub(r"<[^>]+>", "", told) for name, told in re.findall(r'id="not-([\w-]+)".*?<p>(.*?)</p>', text)}
    assert said == {"RQ-2": missing, "RQ-3": waits}


@pytest.mark.spec("WEB-1")
def test_one_run_is_one_run(web: WebBench, bench: Bench) -> None:
    bench.run()
    text = re.sub(r"<[^>]+>", "", web.page("/"))
    assert ", 1 run, " in text
    assert "1 runs" not in text
