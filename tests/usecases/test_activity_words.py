"""The journal in sentences (ERR-4, WEB-1): every event has its own, in both languages, and nothing unknown is lost."""

from __future__ import annotations

from typing import Any

import pytest

from aiflow.domain.activity import ActivityKind
from aiflow.domain.auto.asleep import SLEPT
from aiflow.domain.lifecycle import AutoRunEvent, RunEvent
from aiflow.domain.queue.task import TaskAction
from aiflow.messages import Texts
from aiflow.usecases.shapes.activity_words import activity_facts, activity_words

ENGLISH, JAPANESE = Texts("en"), Texts("ja")
# Of these auto-run writes no entry.
UNTOLD = {
    AutoRunEvent.RUN_STARTED,
    AutoRunEvent.RUN_ENDED,
    AutoRunEvent.WAIT_BEGAN,
    AutoRunEvent.WAIT_ENDED,
    AutoRunEvent.STOP_ASKED,
}
STEP = {"step_id": "S01", "steps": 4, "steps_done": 1}

SENTENCES: list[tuple[dict[str, Any], str, str]] = [
    (
        {"kind": "transition", "actor": "engine"}
        | {"data": {"event": "STEP_DONE", **STEP, "next_step_id": "S02", "next_title": "Read the columns"}},
        "S01: done (1/4). Starting S02: Read the columns",
        "S01 完了（1/4）。S02 開始: Read the columns",
    ),
    ({"kind": "transition", "data": {"event": "STEP_DONE", **STEP}}, "S01: done (1/4)", "S01 完了（1/4）"),
    ({"kind": "transition", "data": {"event": "STEP_DONE", "step_id": "S01"}}, "S01: done", "S01 完了"),
    (
        {"kind": "transition", "data": {"event": "ACCEPTED", "commit": "71d542b3e6a2ffff", "base_branch": "main"}},
        "Accepted: merged into main as 71d542b3e6a2",
        "受け入れ完了: 71d542b3e6a2 として main にマージ",
    ),
    (
        {"kind": "transition", "reason_code": "NEEDS_CLARIFICATION", "data": {"event": "NEEDS_INPUT", **STEP}},
        "Stopped: The agent has a question",
        "停止: エージェントから質問があります",
    ),
    (
        {"kind": "decision", "request_id": "RQ-1", "data": {"ready": 42, "runnable": 7}},
        "Chosen: 42 ready, 7 runnable",
        "選定: ready 42件、実行可能7件",
    ),
    (
        {"kind": "recovery", "reason_code": "LOCK_STALE_RECOVERED", "data": {"pid": 1}},
        "A stale lock was reclaimed",
        "残っていたロックを回収しました",
    ),
    (
        {"kind": "transition", "actor": "auto_run", "data": {"event": "started", "base_branch": "main"}},
        "Auto-run started on main",
        "main で Auto-run を開始しました",
    ),
    (
        {"kind": "transition", "actor": "auto_run", "reason_code": "AUTO_RUNS_LIMIT", "data": {"event": "stopped"}},
        "Auto-run stopped: number of runs reached",
        JAPANESE.message("AUTO_RUNS_LIMIT", {}).title,
    ),
    (
        {"kind": "transition", "actor": "auto_run", "reason_code": "DOCTOR_FAILED", "data": {"event": "stopped"}},
        f"Auto-run ended: {ENGLISH.message('DOCTOR_FAILED', {}).title}",
        f"Auto-run を終了: {JAPANESE.message('DOCTOR_FAILED', {}).title}",
    ),
    (
        {"kind": "transition", "actor": "auto_run", "data": {"event": SLEPT, "seconds": 5400}},
        "The machine slept for 90 min",
        "マシンが90分スリープしていました",
    ),
    (
        {"kind": "request_edited", "data": {"key": "depends_on", "from": [], "to": ["A-1", "A-2"]}},
        "depends_on: none → A-1, A-2",
        "depends_on: なし → A-1, A-2",
    ),
    (
        {"kind": "decision", "actor": "person", "data": {"asked": "stop", "when": "now"}},
        "Auto-run was asked to stop now",
        "Auto-run の即時停止を指示",
    ),
    ({"kind": "cleaned", "data": {"removed": [{}, {}]}}, "Cleaned up: 2 removed", "片付け: 2件を削除"),
]


@pytest.mark.spec("ERR-4", "WEB-1")
@pytest.mark.parametrize(("fields", "english", "japanese"), SENTENCES)
def test_an_entry_is_a_sentence(fields: dict[str, Any], english: str, japanese: str) -> None:
    assert activity_words(fields, ENGLISH) == english
    assert activity_words(fields, JAPANESE) == japanese


def every_entry() -> list[dict[str, Any]]:
    """An entry of every kind and event there is."""
    runs = [{"kind": "transition", "actor": "engine", "data": {"event": each, **STEP}} for each in RunEvent]
    autos = [
        {"kind": "transition", "actor": "auto_run", "reason_code": "LOCK_LOST", "data": {"event": each}}
        for each in (*(set(AutoRunEvent) - UNTOLD), SLEPT)
    ]
    asked = [{"kind": "decision", "data": {"asked": each}} for each in (*TaskAction, "cancel", "stop", "break")]
    decided = [{"kind": "decision", "data": {"decided": each}} for each in ("accept", "send_back")]
    data = {
        "key": "status",
        "from": "draft",
        "to": "ready",
        "title": "T",
        "problem": "P",
        "removed": [1],
        "asked": "stop",
    }
    kinds = [
        {"kind": each, "reason_code": "LOCK_MISMATCH", "data": data}
        for each in set(ActivityKind) - {ActivityKind.TRANSITION}
    ]
    return [*runs, *autos, *asked, *decided, *kinds]


@pytest.mark.spec("ERR-4", "WEB-1")
@pytest.mark.parametrize("texts", [ENGLISH, JAPANESE], ids=["en", "ja"])
def test_every_kind_and_event_has_its_words(texts: Texts) -> None:
    for fields in every_entry():
        said = activity_words(fields, texts)
        assert said, fields
        assert said != activity_facts(fields, texts), fields
        assert "None" not in said, fields


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"kind": "new_kind", "data": {"event": "x", "n": 3}},
        {"kind": "transition", "data": {"event": "NEW_EVENT", "from": "A", "to": "B"}},
        {"kind": "decision", "data": ["odd"]},
        {"kind": "cleaned", "data": {"removed": "odd"}},
        {"kind": "transition", "actor": "auto_run", "data": {"event": SLEPT, "seconds": "odd"}},
        {"kind": "transition", "reason_code": 7, "data": {"event": ["odd"]}},
    ],
)
def test_what_is_not_known_is_told_by_its_facts(fields: dict[str, Any]) -> None:
    assert isinstance(activity_words(fields, ENGLISH), str)
    if fields.get("kind") == "new_kind":
        assert activity_words(fields, ENGLISH) == "new_kind  x  n=3"
    if fields.get("data") == {"event": "NEW_EVENT", "from": "A", "to": "B"}:
        assert activity_words(fields, ENGLISH) == "moved  NEW_EVENT  A → B"
