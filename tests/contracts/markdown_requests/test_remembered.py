"""Requests and runs that are remembered (PRF-7): whoever asks gets exactly what a fresh read gives."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.adapters.files import file_marks
from aiflow.adapters.markdown_requests.remembered import RememberedRequests
from aiflow.adapters.markdown_requests.store import MarkdownRequests, read_plain_file
from aiflow.adapters.run_folders.remembered_runs import RememberedRuns
from aiflow.adapters.run_folders.run_files import RunFiles
from aiflow.domain.request import RequestId
from aiflow.errors import AiflowError

pytestmark = pytest.mark.spec("REQ-4", "PRF-7")

OLD_NS = 1_700_000_000_000_000_000
NAMES = st.sampled_from(["RQ-1.md", "RQ-2.md", "RQ-é.md", "RQ-é.md", "README.md", "note.txt", ".x.md"])
TEXTS = st.sampled_from(
    ["# One\n", "# Two\n", "status: ready\n\n# A\n", "---\nstatus: [\n---\n", "", "id: RQ-1\n\n# B\n"]
)
STEPS = st.one_of(
    st.tuples(st.just("write"), NAMES, TEXTS),  # in its place
    st.tuples(st.just("replace"), NAMES, TEXTS),  # as editors and git do
    st.tuples(st.just("remove"), NAMES, TEXTS),
    st.tuples(st.just("link"), NAMES, TEXTS),
    st.tuples(st.just("age"), NAMES, TEXTS),  # its times are set to those of long ago, as `touch` and `tar` do
    st.tuples(st.just("hide"), NAMES, TEXTS),  # nobody may read it
    st.tuples(st.just("move"), NAMES, TEXTS),
)


def play(folder: Path, step: tuple[str, str, str]) -> None:
    what, name, text = step
    path, other = folder / name, folder.parent / "other.md"
    if what == "write" and not path.is_symlink():
        path.write_text(text)
    elif what == "replace":
        other.write_text(text)
        other.replace(path)
    elif what == "remove":
        path.unlink(missing_ok=True)
    elif what == "link":
        path.unlink(missing_ok=True)
        (folder.parent / "target.txt").write_text(text)
        path.symlink_to("../target.txt")
    elif path.exists():
        _alter(path, what)


def _alter(path: Path, what: str) -> None:
    if what == "age":
        os.utime(path, ns=(OLD_NS, OLD_NS))
    elif what == "hide":
        path.chmod(0o000 if path.stat().st_mode & 0o400 else 0o644)
    elif not path.is_symlink():
        path.rename(path.with_name("RQ-3.md"))


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=15), st.booleans())
def test_it_is_always_what_a_fresh_read_gives(steps: list[tuple[str, str, str]], is_bold: bool) -> None:
    # Nothing is remembered while it is young: the bold form remembers at once what was made before the last tick.
    before, file_marks.YOUNG_NS = file_marks.YOUNG_NS, 15_000_000 if is_bold else file_marks.YOUNG_NS
    try:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made, "requests")
            folder.mkdir()
            remembered = RememberedRequests(made, "requests")
            for step in steps:
                play(folder, step)
                if is_bold:
                    threading.Event().wait(0.016)
                assert remembered.load() == MarkdownRequests(made, "requests").load()
                assert remembered.load() == MarkdownRequests(made, "requests").load()
    finally:
        file_marks.YOUNG_NS = before


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_marks, "YOUNG_NS", 0)


@pytest.mark.usefixtures("_at_once")
def test_a_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from aiflow.adapters.markdown_requests import remembered as module

    (tmp_path / "requests").mkdir()
    for number in range(5):
        (tmp_path / f"requests/RQ-{number}.md").write_text(f"# {number}\n")
    read: list[str] = []

    def counted(name: str, folder_fd: int) -> bytes | None:
        read.append(name)
        return read_plain_file(name, folder_fd)

    monkeypatch.setattr(module, "read_plain_file", counted)
    requests = RememberedRequests(tmp_path, "requests")
    first = requests.load()
    assert len(read) == 5
    assert requests.load() == first
    assert len(read) == 5
    (tmp_path / "requests/RQ-3.md").write_text("# Another, longer title\n")
    assert [request.title for request in requests.load()[0] if request.id == "RQ-3"] == ["Another, longer title"]
    assert read[5:] == ["RQ-3.md"]
    requests.load()[0].clear()  # what a caller does to its list is its own business
    assert len(requests.load()[0]) == 5


def test_what_was_just_written_is_not_remembered(tmp_path: Path) -> None:
    (tmp_path / "requests").mkdir()
    path = tmp_path / "requests/RQ-1.md"
    path.write_text("# A\n")
    status = path.stat()
    assert not file_marks.is_telling(status)  # a kernel with coarse times could not tell the next one from it
    long_ago = os.stat_result(status, {"st_mtime_ns": OLD_NS, "st_ctime_ns": OLD_NS})
    assert file_marks.is_telling(long_ago)
    requests = RememberedRequests(tmp_path, "requests")
    for title in ["A", "B"] * 200:  # the same size, the same file, often within one tick
        path.write_text(f"# {title}\n")
        assert requests.load()[0][0].title == title


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    (tmp_path / "requests").mkdir()
    requests = RememberedRequests(tmp_path, "requests")
    assert requests.load() == ([], [])
    (tmp_path / "requests").rmdir()
    with pytest.raises(AiflowError, match="REQUESTS_DIR_MISSING"):
        requests.load()


def test_many_threads_read_the_same(tmp_path: Path) -> None:
    (tmp_path / "requests").mkdir()
    for number in range(50):
        (tmp_path / f"requests/RQ-{number}.md").write_text(f"# {number}\n")
    requests, found = RememberedRequests(tmp_path, "requests"), list[object]()
    threads = [threading.Thread(target=lambda: found.append(requests.load())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [MarkdownRequests(tmp_path).load()] * 8


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize("state", ["DONE", "FAILED", "nonsense"])
def test_a_run_is_read_again_when_it_changed(tmp_path: Path, state: str) -> None:
    folder = tmp_path / "runs/RQ-1/RUN-20260101-000000-000001"
    folder.mkdir(parents=True)
    stage = folder / "stage.json"
    stage.write_text(json.dumps({"state": "PLANNING", "request_id": "RQ-1", "run_id": folder.name}))
    runs = RememberedRuns(tmp_path)
    for _ in range(2):
        assert runs.latest() == RunFiles(tmp_path).latest()
    stage.write_text(json.dumps({"state": state, "request_id": "RQ-1", "run_id": folder.name}))
    assert runs.latest() == RunFiles(tmp_path).latest()
    assert runs.all_of(RequestId("RQ-1")) == RunFiles(tmp_path).all_of(RequestId("RQ-1"))
    stage.unlink()
    assert runs.latest() == RunFiles(tmp_path).latest()
