"""Diffs as the page draws them: what git really writes, and what a hostile file can put into it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.adapters.git.comparing import compare
from aiflow.adapters.git.git_cli import Git
from aiflow.domain.runs.worktree import FileDiff, RunDiff
from aiflow.web.text.diff import DiffFile, DiffView, file_anchor, view_diff
from aiflow.web.text.diff_parse import parse_diff, unquoted
from aiflow.web.text.diff_words import differing_words

HEAD = "diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n"


def shown(text: str, *files: FileDiff, **given: object) -> DiffView:
    return view_diff(RunDiff("RQ-1", "run", None, "old", "new", files, text, **given))  # type: ignore[arg-type]


def only(text: str, *files: FileDiff) -> DiffFile:
    (file,) = shown(text, *files).files
    return file


def rows(file: DiffFile) -> list[tuple[str, int | None, int | None, str]]:
    return [(line.kind, line.old, line.new, str(line.html)) for hunk in file.hunks for line in hunk.lines]


class Repository:
    """A repository with what was there before, and what is there now."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, files: dict[str | bytes, bytes | None]) -> str:
        for name, content in files.items():
            path = os.path.join(os.fsencode(self.root), os.fsencode(name))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if content is None:
                os.unlink(path)
            else:
                Path(os.fsdecode(path)).write_bytes(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD")

    def view(self, old: str, new: str) -> DiffView:
        found = compare(Git(str(self.root)), old, new)
        assert found is not None
        return shown(found.text, *found.files)


@pytest.fixture
def repo(repository: Path) -> Repository:
    return Repository(repository)


@pytest.mark.spec("WEB-1")
def test_what_git_writes_is_read(repo: Repository) -> None:
    old = repo.commit(
        {
            "changed.py": b"".join(b"line %d\n" % number for number in range(1, 31)),
            "gone.txt": b"a\nb\n",
            "moved.txt": b"".join(b"same %d\n" % number for number in range(20)),
            "image.png": b"\x89PNG\x00\x01",
            "run.sh": b"#!/bin/sh\n",
            "unended": b"no end",
        }
    )
    lines = [b"line %d\n" % number for number in range(1, 31)]
    lines[4], lines[24] = b"line five\n", b"line 25\nline more\n"
    repo.git("mv", "moved.txt", "new place.txt")
    repo.git("update-index", "--chmod=+x", "run.sh")
    (repo.root / "run.sh").chmod(0o755)
    new = repo.commit(
        {
            "changed.py": b"".join(lines),
            "gone.txt": None,
            "image.png": b"\x89PNG\x00\x02",
            "empty": b"",
            "unended": b"an end\n",
        }
    )
    view = repo.view(old, new)
    files = {file.path: file for file in view.files}
    assert {path: (file.change, file.added, file.deleted) for path, file in files.items()} == {
        "changed.py": ("changed", 2, 1),
        "empty": ("added", 0, 0),
        "gone.txt": ("deleted", 0, 2),
        "image.png": ("changed", 0, 0),
        "new place.txt": ("renamed", 0, 0),
        "run.sh": ("changed", 0, 0),
        "unended": ("changed", 1, 1),
    }
    assert (view.added, view.deleted, view.left_out_lines, view.left_out_files) == (3, 4, 0, 0)
    assert [path for path, file in files.items() if file.is_binary] == ["image.png"]
    assert files["new place.txt"].old_name == "moved.txt"
    assert (files["run.sh"].old_mode, files["run.sh"].new_mode) == ("100644", "100755")
    assert (files["empty"].old_mode, files["empty"].new_mode) == (None, None)
    changed = rows(files["changed.py"])
    assert ("m", 5, None, 'line <span class="w">5</span>') in changed
    assert ("p", None, 5, 'line <span class="w">five</span>') in changed
    assert ("p", None, 26, "line more") in changed
    assert ("", 27, 28, "line 27") in changed
    assert [line.is_unended for hunk in files["unended"].hunks for line in hunk.lines] == [True, False]
    assert not any(file.is_closed for file in view.files)


NAMES: list[bytes] = [
    "日本語 のファイル.txt".encode(),
    b'quo"te\\back.txt',
    b"tab\there.txt",
    b"new\nline.txt",
    b"<script>alert(1)</script>",
    b" b b/ b.txt",
    b"a b/a",
    b"bad-\xff-byte",
    "dir/\u202egnp.exe".encode(),
    b"-- a/x",
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_name_of_a_file_is_read_as_git_means_it(repo: Repository, name: bytes) -> None:
    first = repo.commit({"base": b""})
    second = repo.commit({name: b"one\n" * 9})
    repo.git("mv", "--", os.fsdecode(name), "plain")
    third = repo.commit({})
    readable = name.decode("utf-8", "backslashreplace")
    for old, new, change in ((first, second, "added"), (second, first, "deleted")):
        (file,) = repo.view(old, new).files
        assert (file.path, file.change) == (readable, change)
    (moved,) = repo.view(third, second).files
    assert (moved.path, moved.change, moved.old_name) == (readable, "renamed", "plain")
    assert "<script" not in moved.name
    assert "\u202e" not in moved.name
    moved.name.encode()


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_that_only_the_first_line_tells(repo: Repository, name: bytes) -> None:
    first = repo.commit({name: b"\x00one"})
    second = repo.commit({name: b"\x00two"})
    (file,) = repo.view(first, second).files
    assert (file.path, file.is_binary) == (name.decode("utf-8", "backslashreplace"), True)


def test_no_line_of_a_file_is_taken_for_a_part_of_the_diff(repo: Repository) -> None:
    evil = (
        b"-- a/x\n++ b/x\ndiff --git a/y b/y\n@@ -1 +1 @@\n\\ No newline at end of file\nBinary files a and b differ\n"
    )
    old = repo.commit({"a": evil, "z": b"1\n"})
    new = repo.commit({"a": b"".join(b"+%s" % line for line in evil.splitlines(keepends=True)), "z": b"2\n"})
    files = repo.view(old, new).files
    assert [(file.path, file.added, file.deleted) for file in files] == [("a", 6, 6), ("z", 1, 1)]
    assert [kind for kind, *_ in rows(files[0])] == ["m"] * 6 + ["p"] * 6


def test_a_hunk_ends_where_its_head_says() -> None:
    file = only(HEAD + "@@ -1 +1 @@\n-a\n+b\n-- \n+2.47.3\n")
    assert [(kind, old, new) for kind, old, new, _ in rows(file)] == [("m", 1, None), ("p", None, 1)]


def test_markup_in_a_line_is_text() -> None:
    file = only(HEAD + "@@ -1 +1 @@ <b>head\n-<script>a</script>\n+<script>b</script>\n")
    assert rows(file) == [
        ("m", 1, None, '&lt;script&gt;<span class="w">a</span>&lt;/script&gt;'),
        ("p", None, 1, '&lt;script&gt;<span class="w">b</span>&lt;/script&gt;'),
    ]
    assert "&lt;b&gt;" in file.hunks[0].head


def test_what_nobody_sees_is_seen() -> None:
    file = only(HEAD + "@@ -1,2 +1,2 @@\n \x0cform\u2028feed\n-a\udcff\n+if admin\u202e \u2066# x\n")
    drawn = [html for *_, html in rows(file)]
    assert drawn[0] == '<span class="unseen">\\x0c</span>form<span class="unseen">\\u2028</span>feed'
    assert "\\xff" in drawn[1]
    assert drawn[2].count("unseen") == 2
    "".join(drawn).encode()


def test_a_line_end_of_windows_is_shown_only_where_it_differs() -> None:
    same = only(HEAD + "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n")
    assert [html for *_, html in rows(same)] == ["a", "b", "c"]
    other = only(HEAD + "@@ -1 +1 @@\n-a\n+a\r\n")
    assert [html for *_, html in rows(other)] == ["a", 'a<span class="w"><span class="unseen">\\x0d</span></span>']


def test_a_combined_diff_of_a_merge_is_read() -> None:
    text = (
        "diff --cc a.py\nindex 1,2..3\n--- a/a.py\n+++ b/a.py\n"
        "@@@ -1,3 -1,3 +1,4 @@@\n  same\n- ours\n -theirs\n++both\n +from ours\n  end\n"
    )
    file = only(text)
    assert (file.path, file.added, file.deleted) == ("a.py", 2, 2)
    assert [(kind, new, html) for kind, _, new, html in rows(file)] == [
        ("", 1, "same"),
        ("m", None, "ours"),
        ("m", None, "theirs"),
        ("p", 2, "both"),
        ("p", 3, "from ours"),
        ("", 4, "end"),
    ]


def test_a_line_has_a_place_for_comments_and_for_links() -> None:
    file = only(HEAD + "@@ -10,3 +20,3 @@\n same\n-gone\n+here\n end\n")
    lines = file.hunks[0].lines
    assert [file.place(line) for line in lines] == ["a.py:20", "a.py:21", "a.py:21", "a.py:22"]
    assert [file.line_anchor(line).removeprefix(file.anchor) for line in lines] == ["-n20", "-o11", "-n21", "-n22"]
    assert file.anchor == file_anchor("a.py") != file_anchor("b.py")
    taken = only(HEAD + "@@ -1,2 +0,0 @@\n-a\n-b\n")
    assert [taken.place(line) for line in taken.hunks[0].lines] == ["a.py:1", "a.py:1"]


def _grown(count: int, name: str = "a.py") -> str:
    return HEAD.replace("a.py", name) + f"@@ -0,0 +1,{count} @@\n" + "+x\n" * count


def test_a_large_file_is_closed() -> None:
    assert [only(_grown(count)).is_closed for count in (400, 401)] == [False, True]


def test_what_is_left_out_is_counted() -> None:
    view = shown(_grown(3_000) + _grown(2_500, "b.py") + _grown(1_500, "c.py") + _grown(70, "d.py"))
    assert [sum(len(hunk.lines) for hunk in file.hunks) for file in view.files] == [2_000, 2_000, 1_000, 0]
    assert [file.left_out for file in view.files] == [1_000, 500, 500, 70]
    assert (view.left_out_lines, view.left_out_files) == (2_070, 1)
    assert (view.added, view.files[3].added) == (7_070, 70)


def test_a_text_that_was_cut_keeps_gits_counts_and_files() -> None:
    files = (FileDiff("a.py", 9, 0), FileDiff("z.py", 4, 3, old_path="y.py"), FileDiff("z.png", is_binary=True))
    view = shown(HEAD + "@@ -0,0 +1,9 @@\n+x\n+x\n", *files, unfinished_paths=frozenset({"z.py"}))
    assert [(file.path, file.added, file.left_out) for file in view.files] == [
        ("a.py", 9, 7),
        ("z.py", 4, 7),
        ("z.png", 0, 0),
    ]
    assert [file.is_unfinished for file in view.files] == [False, True, False]
    assert (view.added, view.deleted, view.left_out_lines, view.left_out_files) == (13, 3, 14, 1)
    assert view.files[1].old_name == "y.py"


def test_a_long_line_is_cut_and_counted() -> None:
    file = only(HEAD + "@@ -1 +1 @@\n-" + "<" * 100_000 + "\n+" + "b" * 100_000 + "\n")
    (before, behind) = file.hunks[0].lines
    assert (before.left_out, behind.left_out, len(behind.html)) == (99_000, 99_000, 1_000)


@pytest.mark.parametrize(
    ("old", "new", "marks"),
    [
        ("return a + b", "return a - b", (((9, 10),), ((9, 10),))),
        ("f(a, b)", "f(a, c, b)", ((), ((4, 7),))),
        ("same", "same", ((), ())),
        ("    nothing alike", "    at all, really", ((), ())),
        ("値は一です", "値は二です", (((2, 3),), ((2, 3),))),
        ("x", "", ((), ())),
    ],
)
def test_words_that_differ(old: str, new: str, marks: object) -> None:
    found = differing_words(old, new)
    if new == "f(a, c, b)":
        assert found[0] == ()
        assert "c" in new[found[1][0][0] : found[1][0][1]]
    else:
        assert found == marks


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("plain", "plain"),
        ('"\\346\\227\\245.txt"', "日.txt"),
        ('"a\\tb\\"c\\\\d\\n"', 'a\tb"c\\d\n'),
        ('"\\377"', "\\xff"),
        ('"', '"'),
        ('"\\999"', "\\999"),
    ],
)
def test_a_quoted_name(told: str, name: str) -> None:
    assert unquoted(told) == name


PIECES = [
    "diff --git a/a b/a\n",
    "--- a/a\n",
    "+++ b/a\n",
    "@@ -1,2 +1,2 @@\n",
    "@@@ -1 -1 +1 @@@\n",
    "+x\n",
    "-y\n",
    " z\n",
]
PIECES += [
    "\\ No newline\n",
    "rename from \n",
    "new mode\n",
    "Binary files\n",
    '+++ "b/\\',
    "\n",
    "@@ -0,0 +0,0 @@\n",
    "\udcff",
]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5))).map("".join))
def test_any_text_can_be_drawn_and_sent(text: str) -> None:
    view = shown(text)
    for file in view.files:
        file.name.encode()
        for hunk in file.hunks:
            for line in hunk.lines:
                line.html.encode()
                file.place(line)


@pytest.mark.timing
def test_a_large_diff_is_drawn_at_once() -> None:
    block = " same <b>\n-return alpha + beta\n+return alpha - beta\n+more & more\n"
    text = "".join(f"{HEAD.replace('a.py', f'{number}.py')}@@ -1,50 +1,75 @@\n{block * 25}" for number in range(50))
    diff = RunDiff("RQ-1", "run", None, "old", "new", (), text)

    def took(*, has_marks: bool) -> float:
        began = time.thread_time()
        view_diff(diff, has_marks=has_marks)
        return time.thread_time() - began

    assert len(parse_diff(text)) == 50
    # 20 and 80 ms where nothing else runs; what takes the square of it takes a minute.
    assert min(took(has_marks=False) for _ in range(3)) < 1
    assert min(took(has_marks=True) for _ in range(3)) < 3
