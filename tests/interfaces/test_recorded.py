"""What programs read stays as it is (CLI): the `--json` of every command is what was recorded before.

`RECORD=1 python -m pytest tests/interfaces/test_recorded.py` writes the recordings anew; look at the difference then.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Program
from dynamo import Dynamo
from interfaces.recorded_scenes import SCENES, queue
from interfaces.recording import Stage

RECORDED = Path(__file__).parent / "recorded"


@pytest.mark.spec("CLI")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_the_json_of_a_scene_is_as_recorded(scene: Callable[[Stage], None], tmp_path: Path) -> None:
    _play(scene, Stage(tmp_path))


@pytest.mark.spec("CLI")
def test_the_json_of_a_queue_is_as_recorded(tmp_path: Path, dynamo: Dynamo) -> None:
    own = {
        "AIFLOW_NAMESPACE": "shop",
        "AIFLOW_QUEUE_POLL_MS": "100",
        "AIFLOW_QUEUE_HEARTBEAT_TIMEOUT_SECONDS": "60",
    }
    _play(queue, Stage(tmp_path, {**dynamo.environ, **own}))


def test_every_command_that_prints_json_is_recorded(aiflow: Program) -> None:
    files = (json.loads(path.read_text(encoding="utf-8")) for path in RECORDED.glob("*.json"))
    recorded = [entry["call"] for calls in files for entry in calls]
    for group in ("", "queue"):
        for name in re.findall(r"^  ([a-z][a-z-]*)  ", aiflow(*group.split(), "--help").stdout, re.MULTILINE):
            command = f"{group} {name}".strip()
            if "COMMAND [ARGS]" not in aiflow(*command.split(), "--help").stdout:
                assert any(call.startswith(f"aiflow {command} ") for call in recorded), command


def _play(scene: Callable[[Stage], None], stage: Stage) -> None:
    """Play a scene, and compare what was answered with its recording, or write that."""
    try:
        scene(stage)
    finally:
        stage.close()
    path = RECORDED / f"{scene.__name__}.json"
    found = _shown(stage.calls) + "\n"
    if os.environ.get("RECORD"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    recorded = path.read_text(encoding="utf-8")
    lines = difflib.unified_diff(recorded.splitlines(), found.splitlines(), "recorded", "found", lineterm="", n=8)
    assert found == recorded, "\n".join(lines)


def _shown(value: Any, indent: str = "") -> str:
    """Write JSON for people: whatever fits on a line stands on one."""
    flat = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(indent) + len(flat) <= 118 or not isinstance(value, (dict, list)):
        return flat
    inner = indent + " "
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + _shown(each, inner) for each in value) + f"\n{indent}]"
    parts = (f"{inner}{json.dumps(key, ensure_ascii=False)}: {_shown(value[key], inner)}" for key in sorted(value))
    return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
