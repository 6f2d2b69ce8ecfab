"""The activity page (WEB-1): sentences with their facts behind them, and the journal to take along."""

from __future__ import annotations

import json
import re

import pytest

from e2e.bench import Bench
from web_yard import WebBench


@pytest.mark.spec("WEB-1", "ERR-4")
def test_what_happened_is_told_in_sentences_with_the_facts_behind_them(web: WebBench, bench: Bench) -> None:
    bench.run()
    text = web.page("/activity")
    assert "Planned. Starting S01 of 1: " in text
    assert "S01: implemented, testing" in text
    assert 'title="moved  IMPLEMENTED  IMPLEMENTING → TESTING  step_id=S01"' in text
    assert "S01 実装済み、テストを開始" in web.page("/activity", language="ja")
    told = bench.aiflow("activity", "RQ-1").stdout
    assert "S01: implemented, testing" in told
    assert "IMPLEMENTED" not in told


@pytest.mark.spec("WEB-1", "ERR-4")
def test_who_pressed_is_named_and_the_engine_stays_the_engine(web: WebBench) -> None:
    web.submit("/requests/RQ-1/run")
    web.until_idle()
    web.submit("/requests/RQ-1/accept")
    web.until_idle()
    name = web.server.sign_in.user
    rows = re.findall(r"<li>.*?</li>", web.page("/activity"), re.DOTALL)
    [asked] = [row for row in rows if "Acceptance requested" in row]
    assert f'<span class="who">{name}</span>' in asked
    [planned] = [row for row in rows if "Planning started" in row]
    assert '<span class="who">engine</span>' in planned


@pytest.mark.spec("WEB-1", "ERR-4")
def test_the_journal_can_be_taken_along_as_json_lines(web: WebBench, bench: Bench) -> None:
    bench.run()
    assert 'href="/activity.jsonl?kind=all"' in web.page("/activity")
    told = web.client.get("/activity.jsonl")
    assert told.headers["content-type"].startswith("application/x-ndjson")
    assert "attachment" in told.headers["content-disposition"]
    entries = [json.loads(line) for line in told.text.splitlines()]
    assert entries == web.get("/api/activity?limit=500")["activity"][::-1]
    assert {each["kind"] for each in entries} >= {"transition", "status_changed"}
    with max((bench.root / ".aiflow/activity").glob("*.jsonl")).open("a") as journal:  # by hand: half a character
        journal.write('{"at": "2026-01-01T00:00:00+00:00", "kind": "transition", "request_id": "\\ud800"}\n')
    assert json.loads(web.client.get("/activity.jsonl").text.splitlines()[-1])["request_id"] == "\ud800"
    only = web.client.get("/activity.jsonl?kind=transitions&q=RQ-404").text
    assert only == ""
    outside = web.new_client(Authorization="Bearer wrong", Accept="application/x-ndjson")
    assert outside.get("/activity.jsonl", follow_redirects=False).status_code in (303, 401)


def test_a_change_of_a_list_is_told_like_any_other(web: WebBench, bench: Bench) -> None:
    bench.aiflow("set", "RQ-1", "labels=one,two")
    assert "labels" in web.page("/activity")
