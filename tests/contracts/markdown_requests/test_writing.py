"""Writing request files (REQ-3): only the value's bytes change, and nobody's change is lost."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.adapters.files.atomic_files import replace_file
from aiflow.adapters.files.guard_files import guarded
from aiflow.adapters.markdown_requests.block import read_block
from aiflow.adapters.markdown_requests.patch import PatchError, patch
from aiflow.adapters.markdown_requests.scan import read_request
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.request import Request, RequestId
from aiflow.errors import AiflowError, BadInputError, ConflictError, EnvironmentProblemError, NotFoundError
from aiflow.ports import RequestEditor
from builders import write_request
from conftest import somebody_else

RQ = RequestId("RQ-1")

# --- one value, byte for byte ----------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-3")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\nstatus: ready\n---\n", "---\nstatus: blocked\n---\n"),
        ("---\r\nstatus: ready\r\n---\r\n", "---\r\nstatus: blocked\r\n---\r\n"),
        ("\ufeff---\nstatus: ready\n---\n", "\ufeff---\nstatus: blocked\n---\n"),
        ("---\nstatus:   ready   # why\n---\nx", "---\nstatus:   blocked   # why\n---\nx"),
        ('---\n"status" : "ready"\n---\n', '---\n"status" : "blocked"\n---\n'),
        ("---\nstatus: 'ready'\n---\n", "---\nstatus: 'blocked'\n---\n"),
        ("---\nstatus:\npriority: P1\n---\n", "---\nstatus: blocked\npriority: P1\n---\n"),
        ("---\nstatus: # none\n---\n", "---\nstatus: blocked # none\n---\n"),
        ("---\nstatus: ~\n---\n", "---\nstatus: blocked\n---\n"),
        (
            "---\nx: {a: [1, 2]}\nstatus: ready\ny: |\n  status: no\n---\n",
            "---\nx: {a: [1, 2]}\nstatus: blocked\ny: |\n  status: no\n---\n",
        ),
        ("---\n題: 絵文字😀\nstatus: ready\n---\n本文😀", "---\n題: 絵文字😀\nstatus: blocked\n---\n本文😀"),
        ("status: ready\n\nstatus: ready\n", "status: blocked\n\nstatus: ready\n"),
        ("status: ready", "status: blocked"),
        ("---\nstatus: >-\n  ready\n# c\npriority: P1\n---\n", "---\nstatus: blocked\n# c\npriority: P1\n---\n"),
        # a key that is not there yet
        ("---\npriority: P1\n---\nbody", "---\npriority: P1\nstatus: blocked\n---\nbody"),
        ("---\r\npriority: P1\r\n---\r\n", "---\r\npriority: P1\r\nstatus: blocked\r\n---\r\n"),
        ("---\n---\nbody", "---\nstatus: blocked\n---\nbody"),
        ("priority: P1\n\nbody", "priority: P1\nstatus: blocked\n\nbody"),
        ("priority: P1", "priority: P1\nstatus: blocked"),
        ("# Title\n", "---\nstatus: blocked\n---\n\n# Title\n"),
        ("\ufeff# Title\r\n", "\ufeff---\r\nstatus: blocked\r\n---\r\n\r\n# Title\r\n"),
        ("\n# Title\n", "---\nstatus: blocked\n---\n\n# Title\n"),
    ],
)
def test_only_the_value_changes(before: str, after: str) -> None:
    assert patch(before, {"status": "blocked"}) == after


@pytest.mark.spec("REQ-3")
@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("depends_on: [A] # c\n", ("B", "C"), "depends_on: [B, C] # c\n"),
        ("depends_on: [A]\n", (), "depends_on: []\n"),
        (
            "depends_on:\n  - A # a\n  - B\n# c\nstatus: ready\n",
            ("X", "Y", "Z"),
            "depends_on:\n  - X\n  - Y\n  - Z\n# c\nstatus: ready\n",
        ),
        ("depends_on:\n- A\nstatus: ready\n", ("X",), "depends_on:\n- X\nstatus: ready\n"),
        (
            "depends_on:\n  - A # a\n  # between\n  - B # b\n",
            ("A", "B", "C"),
            "depends_on:\n  - A # a\n  # between\n  - B # b\n  - C\n",
        ),
        ("depends_on:\n  - A # a\n  - 'B' # b\n  - C\n", ("A", "B"), "depends_on:\n  - A # a\n  - 'B' # b\n"),
        ("depends_on:\n  - A # a\n  - B-x # b\n  - C # c\n", ("A", "C"), "depends_on:\n  - A # a\n  - C # c\n"),
        ("depends_on: # why\n  - A # first\n  # about B\n  - B\n", ("B",), "depends_on: # why\n  # about B\n  - B\n"),
        ("depends_on:  # why\n  - A\nstatus: ready\n", (), "depends_on: []  # why\nstatus: ready\n"),
        ("depends_on:\n  -   A\n  - B\n", ("N", "A", "B"), "depends_on:\n  - N\n  -   A\n  - B\n"),
        ("depends_on:\r\n- A\r\n- B\r\n", ("X", "Y"), "depends_on:\r\n- X\r\n- Y\r\n"),
        ("depends_on:\n  - A\n  - B\nstatus: ready\n", (), "depends_on: []\nstatus: ready\n"),
        ("depends_on: [\n  A,\n  B ]\nstatus: ready\n", ("X",), "depends_on: [X]\nstatus: ready\n"),
    ],
)
def test_lists_keep_their_form(before: str, value: tuple[str, ...], after: str) -> None:
    assert patch(f"---\n{before}---\n", {"depends_on": value}) == f"---\n{after}---\n"


@pytest.mark.spec("REQ-3")
@given(
    st.text(max_size=30).filter(lambda text: text == text.strip() and text not in ("",)),
    st.sampled_from(["a", "'a'", '"a"', "|\n  a", ""]),
)
def test_any_text_can_be_a_value_and_is_read_back_as_it_was(title: str, old: str) -> None:
    try:
        title.encode()
    except UnicodeEncodeError:
        return
    text = patch(f"---\ntitle: {old}\nstatus: ready\n---\nbody\n", {"title": title})
    assert read_block(text).entries["title"].value == title
    assert text.endswith("status: ready\n---\nbody\n")


@pytest.mark.spec("REQ-3")
@given(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=10), max_size=4),
    st.sampled_from(["[a]", "", "\n  - a\n  - b"]),
)
def test_any_list_can_be_a_value(labels: list[str], old: str) -> None:
    text = patch(f"---\nlabels: {old}\nstatus: ready\n---\nbody\n", {"labels": tuple(labels)})
    assert read_block(text).entries["labels"].value == tuple(labels)


comments = st.sampled_from(["", " # why", "   #x", " # 日本語"])
other_lines = st.sampled_from(
    [
        "# comment",
        "",
        "owner: me",
        "x: {a: 1}",
        "notes: |\n  status: done\n  more",
        "list:\n- a\n# c\n- b",
        "題: 😀",
        "priority: P1",
        'title: "a: b"',
        "depends_on: [A,\n  B]",
    ]
)
bodies = st.sampled_from(
    ["", "body", "# T\n\nstatus: ready\n", "---\nstatus: ready\n---\n", "日本語😀\n", "x" * 1_000_000]
)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, str, str]:
    """A file as (before the value, the value, after it), in any of the forms."""
    lines = draw(st.lists(other_lines, unique=True, max_size=4))
    fenced = draw(st.booleans())
    if not fenced:  # no empty line inside, and a first line with # would be a heading
        lines = sorted((line for line in lines if line), key=lambda line: line.startswith("#"))
    at = draw(st.integers(0, len([line for line in lines if not line.startswith("#")])))
    head = "".join(f"{line}\n" for line in lines[:at]) + "status: "
    tail = draw(comments) + "\n" + "".join(f"{line}\n" for line in lines[at:])
    body = draw(bodies)
    before, after = ("---\n" + head, tail + "---\n" + body) if fenced else (head, tail + "\n" + body)
    eol = draw(st.sampled_from(["\n", "\r\n"]))
    bom = draw(st.sampled_from(["", "\ufeff"]))
    value = draw(st.sampled_from(["ready", "draft", "running", "done"]))
    return bom + before.replace("\n", eol), value, after.replace("\n", eol)


@pytest.mark.spec("REQ-3")
# The pieces that a file is made of are few: a hundred files have them all beside each other.
@settings(max_examples=100)
@given(files(), st.sampled_from(["ready", "blocked", "done", "archived"]))
def test_for_any_file_and_any_status_only_the_bytes_of_the_value_differ(parts: tuple[str, str, str], new: str) -> None:
    before, old, after = parts
    assert patch(before + old + after, {"status": new}) == before + new + after


@pytest.mark.spec("REQ-3")
@pytest.mark.parametrize(
    "text",
    [
        "---\nstatus: ready\n",
        "---\nstatus: [\n---\n",
        "---\nstatus: ready\nstatus: done\n---\n",
        "---\nx: &a ready\nstatus: *a\n---\n",
        "---\n- a\n---\n",
        "---\n{priority: P1}\n---\n",
        "---\nstatus: [ready, # c\n  x]\n---\n",
        "---\nstatus: >  # c\n  ready\n---\n",
    ],
)
def test_what_cannot_be_changed_safely_is_not_changed(text: str) -> None:
    with pytest.raises(PatchError):
        patch(text, {"status": "blocked"})


@pytest.mark.spec("REQ-3")
def test_a_wrong_value_can_be_mended() -> None:
    assert (
        patch("---\nstatus: wip\npriority: P9\n---\n", {"status": "ready"}) == "---\nstatus: ready\npriority: P9\n---\n"
    )


# --- the store -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-3")
def test_a_write_keeps_the_mode_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = write_request(tmp_path, "RQ-1", status="ready")
    path.chmod(0o640)
    assert MarkdownRequests(tmp_path).edit(RQ, {"status": Change("done")}) == {"status": ("ready", "done")}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path / "requests") == ["RQ-1.md"]
    assert os.listdir(tmp_path / ".aiflow/tmp") == []
    assert (tmp_path / ".aiflow/.gitignore").read_text() == "*\n"


@pytest.mark.spec("REQ-3")
def test_saying_the_same_again_writes_nothing(tmp_path: Path) -> None:
    path = write_request(tmp_path, "RQ-1", status="ready")
    before = path.stat()
    assert MarkdownRequests(tmp_path).edit(RQ, {"status": Change("ready", expected="draft")}) == {}
    assert path.stat().st_ino == before.st_ino


@pytest.mark.spec("REQ-3")
def test_only_a_change_of_that_very_key_is_a_conflict(tmp_path: Path) -> None:
    path = write_request(tmp_path, "RQ-1", status="ready", priority="P1")
    store = MarkdownRequests(tmp_path)
    path.write_text(path.read_text().replace("P1", "P0").replace("Body", "Another body"))
    store.edit(RQ, {"status": Change("running", expected="ready")})
    assert "priority: P0" in path.read_text()
    path.write_text(path.read_text().replace("running", "archived"))
    with pytest.raises(ConflictError) as caught:
        store.edit(RQ, {"status": Change("blocked", expected="running")})
    assert (caught.value.reason_code, caught.value.context["key"], caught.value.context["found"]) == (
        "EDIT_CONFLICT",
        "status",
        "archived",
    )
    assert "status: archived" in path.read_text()


@pytest.mark.spec("REQ-3")
def test_a_body_that_was_changed_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    path = write_request(tmp_path, "RQ-1", status="ready")
    store = MarkdownRequests(tmp_path)
    body = store.body(RQ)
    store.edit(RQ, {}, body=(body, body + "More.\n"))
    assert path.read_text().endswith("Body of RQ-1.\nMore.\n")
    with pytest.raises(ConflictError) as caught:
        store.edit(RQ, {"status": Change("done")}, body=(body, "\nMine.\n"))
    assert caught.value.context["key"] == "body"
    assert "status: ready" in path.read_text()


@pytest.mark.spec("REQ-3")
def test_an_editor_that_saves_in_the_last_moment_is_not_overwritten(tmp_path: Path) -> None:
    path = write_request(tmp_path, "RQ-1", status="ready")
    old = path.read_bytes()
    path.write_bytes(b"saved by an editor")
    assert not replace_file(path, b"ours", tmp_path, expected=old)
    assert path.read_bytes() == b"saved by an editor"
    assert sorted(os.listdir(tmp_path)) == ["requests"]


@pytest.mark.spec("REQ-3")
def test_a_link_inside_the_repository_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "requests").mkdir()
    target = tmp_path / "docs/plan.md"
    target.write_text("---\nstatus: ready\n---\n")
    (tmp_path / "requests/RQ-1.md").symlink_to("../docs/plan.md")
    MarkdownRequests(tmp_path).edit(RQ, {"status": Change("done")})
    assert (tmp_path / "requests/RQ-1.md").is_symlink()
    assert target.read_text() == "---\nstatus: done\n---\n"


@pytest.mark.spec("REQ-3")
@pytest.mark.parametrize("request_id", ["RQ-2", "../secret", "", "RQ-1.md/..", "/etc/passwd"])
def test_an_id_is_looked_up_never_used_as_a_path(tmp_path: Path, request_id: str) -> None:
    write_request(tmp_path, "RQ-1", status="ready")
    (tmp_path / "secret.md").write_text("---\nstatus: ready\n---\n")
    with pytest.raises(NotFoundError):
        MarkdownRequests(tmp_path).edit(RequestId(request_id), {"status": Change("done")})


@pytest.mark.spec("REQ-3")
@pytest.mark.parametrize("data", [b"\xff\xfe", b"---\nstatus: [\n---\n"])
def test_a_broken_file_is_not_written(tmp_path: Path, data: bytes) -> None:
    path = write_request(tmp_path, "RQ-1", data)
    with pytest.raises(BadInputError) as caught:
        MarkdownRequests(tmp_path).edit(RQ, {"status": Change("done")})
    assert caught.value.reason_code == "REQUEST_INVALID"
    assert path.read_bytes() == data


@pytest.mark.spec("REQ-3")
def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_request(tmp_path, "RQ-1", status="draft")
    MarkdownRequests(tmp_path).edit(RQ, {"status": Change("ready")})
    before = path.read_bytes()

    def fail(_fd: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(EnvironmentProblemError) as caught:
        MarkdownRequests(tmp_path).edit(RQ, {"status": Change("done")})
    assert caught.value.reason_code == "DISK_FULL"
    assert path.read_bytes() == before
    assert os.listdir(tmp_path / ".aiflow/tmp") == []


# Imports once, and forks for each: they all work at once, from the moment in which the last of them is there.
TOGETHER = """
import os, sys
{imports}
here, there = os.pipe()
children = []
for number in range(int(sys.argv[1])):
    if not (child := os.fork()):
        os.close(there)
        os.read(here, 1)
        break
    children.append(child)
else:
    os.close(there)
    sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
{work}
"""


def run_together(imports: str, work: str, count: int, root: Path) -> None:
    """Let processes work at once: each knows its `number` and the `root`."""
    script = TOGETHER.format(imports=f"import pathlib, time\n{imports}\nroot = pathlib.Path(sys.argv[2])", work=work)
    argv = [sys.executable, "-c", script, str(count), str(root)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


STORE = """
import ctypes, difflib, yaml, aiflow.adapters.markdown_requests.edit  # else each of them imports what is named late
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.domain.backlog.metadata import Change
"""
WRITER = """
store = MarkdownRequests(root)
keys = ["title", "priority", "status", "depends_on", "labels", "created_at", "updated_at", "id"]
for turn in range(12):
    key = keys[number] if same else ["title", "status"][turn % 2]
    value = (f"V{turn}",) if key in ("depends_on", "labels") else f"V{number}-{turn}"
    store.edit("RQ-1" if same else f"RQ-{number}", {key: Change(value)})
"""


@pytest.mark.spec("REQ-3")
def test_eight_processes_writing_different_keys_of_one_file_lose_nothing(tmp_path: Path) -> None:
    path = write_request(tmp_path, "RQ-1", "---\n# c\nowner: me\n---\n\nbody\r\n")
    run_together(STORE, f"same = True\n{WRITER}", 8, tmp_path)
    entries = read_block(path.read_bytes().decode()).entries
    assert {key: entry.value for key, entry in entries.items()} == {
        "title": "V0-11",
        "priority": "V1-11",
        "status": "V2-11",
        "depends_on": ("V11",),
        "labels": ("V11",),
        "created_at": "V5-11",
        "updated_at": "V6-11",
        "id": "V7-11",
    }
    text = path.read_bytes()
    assert text.startswith(b"---\n# c\nowner: me\n")
    assert text.endswith(b"---\n\nbody\r\n")


@pytest.mark.spec("REQ-3")
def test_eight_processes_writing_different_files_lose_nothing(tmp_path: Path) -> None:
    for number in range(8):
        write_request(tmp_path, f"RQ-{number}", status="ready", title="x")
    run_together(STORE, f"same = False\n{WRITER}", 8, tmp_path)
    for number in range(8):
        text = (tmp_path / f"requests/RQ-{number}.md").read_text()
        assert f"title: V{number}-10\n" in text
        assert f"status: V{number}-11\n" in text


READER = """
store = MarkdownRequests(root)
if number == 0:
    while not (root / "reading-1").exists():
        time.sleep(0.001)
    for turn in range(150):
        store.edit("RQ-1", {"status": Change(["blocked", "ready"][turn % 2])})
    store.edit("RQ-1", {"status": Change("done")})
else:
    seen = set()
    while "done" not in seen:
        valid, broken = store.load()
        seen.add(valid[0].status.value if len(valid) == 1 and not broken else repr(broken))
        if not (root / "reading-1").exists():
            (root / "reading-1").touch()
    (root / "seen-1").write_text(" ".join(sorted(seen)))
"""


@pytest.mark.spec("REQ-3")
def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    write_request(tmp_path, "RQ-1", "---\nstatus: ready\n---\n" + "x" * 200_000)
    run_together(STORE, READER, 2, tmp_path)
    seen = set((tmp_path / "seen-1").read_text().split())
    assert {"ready", "done"} <= seen <= {"ready", "blocked", "done"}


CREATING = """
import ctypes, datetime, difflib, yaml, aiflow.adapters.markdown_requests.edit
from aiflow.adapters.journal import ActivityLog
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.usecases.backlog.create import NewRequest, create_request
"""
CREATOR = """
for turn in range(10):
    create_request(NewRequest(f"Title {number}-{turn}", "body"), MarkdownRequests(root), ActivityLog(root), lambda: datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC))
"""


@pytest.mark.spec("REQ-3")
def test_requests_created_at_once_get_different_ids(tmp_path: Path) -> None:
    (tmp_path / "requests").mkdir()
    run_together(CREATING, CREATOR, 8, tmp_path)
    valid, broken = MarkdownRequests(tmp_path).load()
    assert not broken
    assert sorted(r.id for r in valid) == [f"RQ-20260102-{number:03d}" for number in range(1, 81)]
    assert len({r.title for r in valid}) == 80


@pytest.mark.spec("REQ-3")
def test_a_killed_writer_frees_the_guard(tmp_path: Path) -> None:
    guard = tmp_path / "guard"
    script = f"from pathlib import Path\nfrom aiflow.adapters.files.guard_files import guarded\nimport time\nwith guarded(Path({str(guard)!r})):\n    print('held', flush=True)\n    time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        holder.kill()
    with guarded(guard):
        pass


# --- loading ---------------------------------------------------------------------------------------------------------


def loaded(root: Path) -> tuple[dict[str, Request], dict[str, Any]]:
    valid, broken = MarkdownRequests(root).load()
    return {r.id: r for r in valid}, {b.where: [p.kind.value for p in b.problems] for b in broken}


@pytest.mark.spec("REQ-4")
def test_a_broken_file_stops_nothing(tmp_path: Path) -> None:
    write_request(tmp_path, "RQ-1", status="ready")
    folder = tmp_path / "requests"
    write_request(tmp_path, "broken", "---\nstatus: [\n---\n")
    write_request(tmp_path, "empty", "")
    write_request(tmp_path, "binary", b"\x00\xff")
    write_request(tmp_path, "large", b"x" * 5_000_001)
    (folder / "folder.md").mkdir()
    (folder / "nowhere.md").symlink_to("gone.md")
    (folder / "outside.md").symlink_to("/etc/passwd")
    (folder / "inside.md").symlink_to("RQ-1.md")
    os.mkfifo(folder / "pipe.md")
    (folder / "notes.txt").write_text("not a request")
    (folder / ".hidden.md").write_text("an editor's")
    (folder / "sub").mkdir()
    valid, broken = loaded(tmp_path)
    assert set(valid) == {"RQ-1", "inside"}
    assert broken == {
        "requests/binary.md": ["not_text"],
        "requests/broken.md": ["bad_yaml"],
        "requests/empty.md": ["empty"],
        "requests/folder.md": ["not_a_file"],
        "requests/large.md": ["too_large"],
        "requests/nowhere.md": ["broken_link"],
        "requests/outside.md": ["link_outside"],
        "requests/pipe.md": ["not_a_file"],
    }


@pytest.mark.spec("REQ-4")
def test_an_unreadable_file_is_told_as_such(tmp_path: Path) -> None:
    write_request(tmp_path, "RQ-1", status="ready")
    write_request(tmp_path, "RQ-2", status="ready").chmod(0)
    with somebody_else(tmp_path):
        valid, broken = loaded(tmp_path)
    assert set(valid) == {"RQ-1"}
    assert broken == {"requests/RQ-2.md": ["unreadable"]}


@pytest.mark.spec("REQ-4")
def test_files_that_share_an_id_are_all_excluded(tmp_path: Path) -> None:
    write_request(tmp_path, "RQ-1", id="RQ-1", status="ready")
    write_request(tmp_path, "copy", id="RQ-1", status="ready")
    write_request(tmp_path, "RQ-2", status="ready")
    write_request(tmp_path, "other", id="RQ-9", status="ready")
    valid, broken = loaded(tmp_path)
    assert set(valid) == {"RQ-2"}
    assert broken == {
        "requests/RQ-1.md": ["same_id"],
        "requests/copy.md": ["same_id"],
        "requests/other.md": ["other_id"],
    }


@pytest.mark.spec("REQ-2")
def test_an_id_is_the_same_in_both_unicode_forms(tmp_path: Path) -> None:
    composed, decomposed = "ガ-1", "カ\u3099-1"
    write_request(tmp_path, decomposed, status="ready")
    valid, _ = loaded(tmp_path)
    assert set(valid) == {composed}
    MarkdownRequests(tmp_path).edit(RequestId(composed), {"status": Change("done")})
    assert loaded(tmp_path)[0][composed].status == "done"


@pytest.mark.spec("REQ-4")
@pytest.mark.parametrize("make", ["nothing", "file", "link"])
def test_a_missing_folder_is_told_as_such(tmp_path: Path, make: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    if make == "file":
        (root / "requests").write_text("")
    elif make == "link":
        (tmp_path / "elsewhere").mkdir()
        (root / "requests").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AiflowError) as caught:
        MarkdownRequests(root).load()
    assert caught.value.reason_code == "REQUESTS_DIR_MISSING"


@pytest.mark.spec("REQ-2")
def test_the_folder_may_be_another_and_is_made_for_the_first_request(tmp_path: Path) -> None:
    store = MarkdownRequests(tmp_path, "docs/backlog")
    store.require_free("RQ-1")
    assert not (tmp_path / "docs").exists()
    assert store.create(lambda _taken: RQ, "---\nstatus: ready\n---\n# T\n", {}) == "docs/backlog/RQ-1.md"
    assert [(request.id, request.where) for request in store.load()[0]] == [("RQ-1", "docs/backlog/RQ-1.md")]
    with pytest.raises(ConflictError) as caught:
        store.edit(RQ, {"status": Change("done", expected="draft")})
    assert caught.value.context["path"] == "docs/backlog/RQ-1.md"
    with pytest.raises(ConflictError) as caught:
        store.create(lambda _taken: RQ, "x", {})
    assert caught.value.context["path"] == "docs/backlog/RQ-1.md"


@pytest.mark.spec("REQ-2")
def test_no_folder_is_made_beyond_a_link_that_leads_out(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / "docs").symlink_to(tmp_path / "elsewhere")
    store = MarkdownRequests(root, "docs/backlog")
    with pytest.raises(AiflowError, match="REQUESTS_DIR_MISSING"):
        store.create(lambda _taken: RQ, "x", {})
    assert not (tmp_path / "elsewhere/backlog").exists()
    (tmp_path / "elsewhere/backlog").mkdir()
    with pytest.raises(AiflowError, match="REQUESTS_DIR_MISSING"):
        store.load()


@pytest.mark.spec("REQ-2")
@pytest.mark.parametrize("name", ["README.md", "readme.md", "Readme.md"])
def test_a_readme_is_no_request(tmp_path: Path, name: str) -> None:
    (tmp_path / "requests").mkdir()
    (tmp_path / "requests" / name).write_text("---\nstatus: ready\n---\n# How we write requests\n")
    store = MarkdownRequests(tmp_path)
    assert store.load() == ([], [])
    with pytest.raises(AiflowError, match="REQUEST_NOT_FOUND"):
        store.find(RequestId(name.removesuffix(".md")))


def test_what_create_writes_is_a_valid_request(tmp_path: Path) -> None:
    (tmp_path / "requests").mkdir()
    path = MarkdownRequests(tmp_path).create(
        lambda _taken: RQ,
        "---\nlabels: []\ndepends_on: []\n---\n# T\n",
        {"labels": ("a b", "c: d", "[x]"), "depends_on": ("RQ-2",)},
    )
    request = read_request("RQ-1", path, (tmp_path / path).read_bytes())
    assert isinstance(request, Request)
    assert (request.labels, request.depends_on) == (("a b", "c: d", "[x]"), ("RQ-2",))
    with pytest.raises(ConflictError) as caught:
        MarkdownRequests(tmp_path).create(lambda _taken: RequestId("rq-1"), "x", {})
    assert caught.value.reason_code == "REQUEST_EXISTS"


@pytest.mark.spec("REQ-3")
@pytest.mark.parametrize("is_real", [True, False])
def test_a_whole_text_is_replaced_with_the_keys_that_were_changed_meanwhile(tmp_path: Path, is_real: bool) -> None:
    request_id, before = RequestId("RQ-1"), "---\nstatus: ready\npriority: P2\n---\n# Title\n\nBody.\n"
    write_request(tmp_path, "RQ-1", before)
    editor: RequestEditor = MarkdownRequests(tmp_path) if is_real else MemoryRequests({request_id: before})
    assert editor.whole_text(request_id) == before
    editor.edit(request_id, {"status": Change("running")})
    editor.rewrite(request_id, before, before.replace("P2", "P0").replace("Body", "Text"))
    assert editor.whole_text(request_id) == "---\nstatus: running\npriority: P0\n---\n# Title\n\nText.\n"
    now = editor.whole_text(request_id)
    with pytest.raises(ConflictError):
        editor.rewrite(request_id, before, before.replace("Body", "Other"))
    assert editor.whole_text(request_id) == now
