"""The auto-run session on disk (AUT-4): there and back whole, atomic, and no junk is taken for a session."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.adapters.run_folders.auto_files import AutoFile
from aiflow.domain.agents.usage import Usage
from aiflow.domain.auto.session import AutoSession, Result, Started
from aiflow.domain.auto.stopping import Limits, StopRequest
from aiflow.domain.lifecycle import AutoRunState, RunOutcome
from aiflow.errors import EnvironmentProblemError
from aiflow.ports import AutoRecords
from builders import NOW

FULL = AutoSession(
    started_at=NOW,
    runs=7,
    done=4,
    needs_input_in_a_row=1,
    failed_in_a_row=2,
    usage=Usage(cost_usd=1.25),
    not_again=frozenset({"RQ-8", "日本"}),
    stop_request=StopRequest.AFTER_RUN,
    state=AutoRunState.STOPPING,
    reason_code="AUTO_COST_LIMIT",
    began_at=datetime(2026, 11, 1, 22, 0, tzinfo=timezone(timedelta(hours=9))),
    changed_at=NOW + timedelta(minutes=3),
    spent=timedelta(minutes=5, microseconds=7),
    current=Started("RQ-5", "RUN-20261101-220000-00000a"),
    results=(
        Result("RQ-1", "RUN-1", RunOutcome.ACCEPTED),
        Result("RQ-2", None, RunOutcome.FAILED, "REQUEST_INVALID"),
        Result("RQ-3", "RUN-3", RunOutcome.NEEDS_INPUT, "NEEDS_CLARIFICATION"),
    ),
    base_branch="release/1",
    began_clean=True,
    limits=Limits(session_runs=9, session_cost_usd=2.5, until=NOW + timedelta(hours=6)),
    is_watching=True,
    is_delivered=True,
)


@pytest.mark.spec("AUT-4")
def test_a_session_comes_back_as_it_was(tmp_path: Path) -> None:
    records: AutoRecords = AutoFile(tmp_path)
    assert records.load() is None
    assert list(tmp_path.iterdir()) == [], "looking leaves nothing"
    for session in (FULL, AutoSession(started_at=NOW), replace(FULL, current=Started("RQ-1"))):
        records.save(session)
        assert records.load() == session
        assert AutoFile(str(tmp_path)).load() == session
    assert sorted(path.name for path in (tmp_path / ".aiflow").iterdir()) == [".gitignore", "auto.json", "tmp"]
    assert list((tmp_path / ".aiflow/tmp").iterdir()) == []


counts = st.integers(0, 10**9)
names = st.text(min_size=1, max_size=8)
instants = st.timedeltas(timedelta(), timedelta(days=70_000)).map(
    lambda since: datetime(1990, 1, 1, tzinfo=UTC) + since
)
sessions = st.builds(
    AutoSession,
    started_at=instants,
    runs=counts,
    done=counts,
    usage=st.builds(Usage, calls=st.integers(0, 9), cost_usd=st.floats(0, 1e9)),
    not_again=st.frozensets(names, max_size=3),
    stop_request=st.sampled_from(StopRequest),
    state=st.sampled_from(AutoRunState),
    reason_code=st.none() | names,
    began_at=st.none() | instants,
    changed_at=st.none() | instants,
    spent=st.timedeltas(timedelta(), timedelta(days=400)),
    current=st.none() | st.builds(Started, names, st.none() | names),
    results=st.lists(
        st.builds(Result, names, st.none() | names, st.sampled_from(RunOutcome), st.none() | names), max_size=3
    ).map(tuple),
)


@pytest.mark.spec("AUT-4")
@settings(max_examples=30)
@given(sessions)
def test_any_session_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, session: AutoSession) -> None:
    records = AutoFile(tmp_path_factory.getbasetemp())
    records.save(session)
    assert records.load() == session


def shape_of(root: Path) -> dict[str, Any]:
    AutoFile(root).save(FULL)
    shape: dict[str, Any] = json.loads((root / ".aiflow/auto.json").read_text("utf-8"))
    return shape


JUNK: dict[str, list[Any]] = {
    "version": [None, 1, "", "2.0"],
    "state": [None, "asleep", 3, []],
    "reason_code": [3, []],
    "stop_request": [None, "later", {}],
    "began_at": ["yesterday", 5, ""],
    "started_at": [None, "", 5, "2026-13-01"],
    "changed_at": ["x", True],
    "spent_seconds": [None, -1, "5", True, 1e300, 10**400, 1e14],
    "runs": [None, -1, 1.5, True, "3"],
    "done": [None, -1],
    "needs_input_in_a_row": [-1, None],
    "failed_in_a_row": [-1, None],
    "usage": [None, 5, {"cost_usd": -0.5}, {"cost_usd": True}, {"cost_usd": 10**400}, {"calls": -1}, {"calls": "3"}],
    "base_branch": [None, 5, []],
    "began_clean": [None, 1, "yes"],
    "is_watching": [None, 1, "yes"],
    "is_delivered": [None, 1, "yes"],
    "limits": [5, [], {}, {"session_cost_usd": -1}, {"session_cost_usd": 0, "until": "late"}],
    "not_again": [None, "RQ-1", [3], [""], {}],
    "current": [5, "RQ-1", {}, {"request_id": "", "newest_before": None}, {"request_id": "RQ-1", "newest_before": 3}],
    "results": [None, {}, [5], [{}], [{"request_id": "RQ-1", "run_id": None, "outcome": "won", "reason_code": None}]],
}


@pytest.mark.spec("AUT-4")
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in JUNK.items() for value in values])
def test_a_session_with_a_wrong_field_is_none(tmp_path: Path, name: str, value: object) -> None:
    shape = shape_of(tmp_path)
    assert set(shape) == set(JUNK)
    (tmp_path / ".aiflow/auto.json").write_text(json.dumps(shape | {name: value}), "utf-8")
    assert AutoFile(tmp_path).load() is None


# A session of an older version has none of these.
NEWER = {"base_branch", "began_clean", "limits", "is_watching", "is_delivered"}


@pytest.mark.spec("AUT-4", "AUT-5")
def test_a_session_of_an_older_version_is_read(tmp_path: Path) -> None:
    shape = {name: value for name, value in shape_of(tmp_path).items() if name not in NEWER}
    (tmp_path / ".aiflow/auto.json").write_text(json.dumps(shape), "utf-8")
    assert AutoFile(tmp_path).load() == replace(
        FULL, base_branch="", began_clean=False, limits=None, is_watching=False, is_delivered=False
    )


@pytest.mark.spec("AUT-4")
@pytest.mark.parametrize("name", [name for name in JUNK if name not in NEWER])
def test_a_session_that_lacks_a_field_is_none(tmp_path: Path, name: str) -> None:
    shape = shape_of(tmp_path)
    del shape[name]
    (tmp_path / ".aiflow/auto.json").write_text(json.dumps(shape), "utf-8")
    assert AutoFile(tmp_path).load() is None


@pytest.mark.spec("AUT-4")
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"5", b"null", b"\xff\xfe", b"[" * 100_000, b'{"cost_usd": NaN}'])
def test_a_file_that_is_no_session_is_none_and_is_written_over(tmp_path: Path, data: bytes) -> None:
    shape_of(tmp_path)
    (tmp_path / ".aiflow/auto.json").write_bytes(data)
    assert AutoFile(tmp_path).load() is None
    AutoFile(tmp_path).save(FULL)
    assert AutoFile(tmp_path).load() == FULL


@pytest.mark.spec("AUT-4")
def test_what_is_no_plain_file_is_none_and_what_cannot_be_written_has_a_name(tmp_path: Path) -> None:
    (tmp_path / ".aiflow").mkdir()
    os.mkfifo(tmp_path / ".aiflow/auto.json")
    assert AutoFile(tmp_path).load() is None
    (tmp_path / ".aiflow/auto.json").unlink()
    (tmp_path / ".aiflow/auto.json").mkdir()
    assert AutoFile(tmp_path).load() is None
    with pytest.raises(EnvironmentProblemError):
        AutoFile(tmp_path).save(FULL)
    assert list((tmp_path / ".aiflow/tmp").iterdir()) == []
