"""What a lost agent left running, told from what is a person's (AGT-5, LCK-4)."""

from __future__ import annotations

import pytest

from aiflow.domain.process import Seen, is_persons, left_by_call, own_folder

pytestmark = pytest.mark.spec("AGT-5", "LCK-4")

SINCE = 100.0
STRAY = Seen(parent=1, session=50, started_at=SINCE, is_inside=True)
# An orphan that emptied its environment and works elsewhere by now.
ELSEWHERE = Seen(parent=1, session=60, started_at=SINCE + 1)
OLD = Seen(parent=1, session=7, started_at=SINCE - 1, is_persons=True)


@pytest.mark.parametrize(
    ("one", "is_found"),
    [
        (STRAY, True),
        (Seen(1, 50, SINCE + 9, is_marked=True), True),
        (ELSEWHERE, False),
        (Seen(1, 50, SINCE - 0.01, is_inside=True), False),
        (Seen(1, 50, SINCE, is_inside=True, has_terminal=True), False),
        (Seen(1, 50, SINCE, is_inside=True, is_persons=True), False),
    ],
)
def test_it_is_found_by_its_mark_or_its_folder_and_never_if_it_is_a_persons(one: Seen, is_found: bool) -> None:
    assert left_by_call({50: one, 7: OLD}, SINCE) == ({50} if is_found else set())


def test_what_hangs_below_a_found_one_is_found_wherever_it_works() -> None:
    child, grandchild = Seen(50, 51, SINCE + 1), Seen(51, 52, SINCE + 2)
    assert left_by_call({50: STRAY, 51: child, 52: grandchild, 60: ELSEWHERE}, SINCE) == {50, 51, 52}


def test_what_shares_its_session_is_found_unless_somebody_else_does_too() -> None:
    orphan = Seen(1, 50, SINCE + 1)
    assert left_by_call({50: STRAY, 51: orphan}, SINCE) == {50, 51}
    for other in (OLD, Seen(1, 0, SINCE, has_terminal=True), Seen(1, 0, SINCE, is_persons=True)):
        mixed = Seen(1, 50, other.started_at, has_terminal=other.has_terminal, is_persons=other.is_persons)
        assert left_by_call({50: STRAY, 51: orphan, 52: mixed}, SINCE) == {50}
    assert left_by_call({50: STRAY, 51: orphan}, SINCE, spared={51}) == {50}


def test_what_a_person_starts_from_a_shell_in_the_worktree_is_left_alone() -> None:
    shell = Seen(1, 40, SINCE, has_terminal=True, is_inside=True)
    editor = Seen(40, 41, SINCE + 1, is_inside=True)  # in a session of its own, without a terminal
    server = Seen(41, 42, SINCE + 2, is_inside=True)
    assert left_by_call({40: shell, 41: editor, 42: server, 50: STRAY}, SINCE) == {50}


def test_an_orphan_is_nobodys_also_where_the_first_process_has_a_terminal() -> None:
    first = Seen(0, 1, 0.0, has_terminal=True, is_persons=True)
    assert left_by_call({1: first, 50: STRAY}, SINCE) == {50}


def test_parents_that_form_a_ring_are_no_trouble() -> None:
    ring = {50: Seen(51, 50, SINCE, is_inside=True), 51: Seen(50, 51, SINCE)}
    assert left_by_call(ring, SINCE) == {50, 51}


@pytest.mark.parametrize(
    ("environ", "is_so"),
    [
        ({}, False),
        ({"TERM": "dumb", "CI": "1", "PATH": "/bin", "PWD": "/x", "SHLVL": "1"}, False),
        ({"TERM": "xterm-256color"}, True),
        ({"DISPLAY": ":0"}, True),
        ({"TERM": "dumb", "INSIDE_EMACS": "29"}, True),
        ({"SSH_CONNECTION": ""}, True),
        ({"INVOCATION_ID": "a"}, True),
    ],
)
def test_a_persons_session_shows_in_the_environment(environ: dict[str, str], is_so: bool) -> None:
    assert is_persons(environ) is is_so


@pytest.mark.parametrize(
    ("cwd", "folder"),
    [
        ("/s/worktrees/RUN-1", "/s/worktrees/RUN-1"),
        ("/s/worktrees/RUN-1/packages/a", "/s/worktrees/RUN-1"),
        ("/s/worktrees/RUN-1.merge", "/s/worktrees/RUN-1.merge"),
        ("/s/worktrees/RUN-12", None),
        ("/home/me/project", None),
        ("/", None),
    ],
)
def test_only_a_runs_own_worktree_is_looked_through(cwd: str, folder: str | None) -> None:
    assert own_folder(cwd, "RUN-1") == folder
