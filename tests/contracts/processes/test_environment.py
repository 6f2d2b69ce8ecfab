"""The environment of agents and tests (AGT-4): an allow-list, what the settings name, what the call adds."""

from __future__ import annotations

import pytest

from aiflow.adapters.processes.environment import ALLOWED, ALWAYS, minimal
from aiflow.adapters.processes.guard import candidates
from aiflow.adapters.secrets import is_secret_name

USERS = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "ja_JP.UTF-8",
    "LC_TIME": "C",
    "TERM": "xterm-256color",
    "GITHUB_TOKEN": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "ANTHROPIC_API_KEY": "secret",
    "AIFLOW_LANG": "ja",
    "PYTHONPATH": "/x",
    "LD_PRELOAD": "x.so",
    "GIT_DIR": "/elsewhere",
    "GIT_INDEX_FILE": "/elsewhere",
    "BASH_ENV": "/x",
}


@pytest.mark.spec("AGT-4")
def test_a_program_gets_what_it_needs_and_nothing_of_the_users_besides() -> None:
    assert minimal(USERS, ()) == {"PATH": "/bin", "HOME": "/home/me", "LC_ALL": "ja_JP.UTF-8", "LC_TIME": "C", **ALWAYS}


@pytest.mark.spec("AGT-4")
def test_what_the_settings_name_is_given_if_it_is_there() -> None:
    given = minimal(USERS, ("ANTHROPIC_API_KEY", "NOT_SET"))
    assert given["ANTHROPIC_API_KEY"] == "secret"
    assert not {"NOT_SET", "GITHUB_TOKEN"} & set(given)


@pytest.mark.spec("AGT-2", "AGT-4")
def test_what_the_call_adds_comes_last() -> None:
    given = minimal(USERS, (), {"AIFLOW_ROLE": "qa", "PATH": "/other", "CI": "no"})
    assert (given["AIFLOW_ROLE"], given["PATH"], given["CI"]) == ("qa", "/other", "no")
    assert USERS["PATH"] == "/bin"


@pytest.mark.spec("AGT-4")
def test_there_is_no_terminal_and_nothing_waits_for_one() -> None:
    for environ in ({}, USERS):
        given = minimal(environ, ("TERM",))
        assert (given["TERM"], given["GIT_TERMINAL_PROMPT"], given["CI"]) == ("dumb", "0", "1")
    assert minimal({}, ()) == ALWAYS


@pytest.mark.spec("AGT-4", "SEC")
def test_nothing_secret_is_on_the_list() -> None:
    assert [name for name in ALLOWED if is_secret_name(name)] == []
    assert not {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "SSH_AUTH_SOCK", "PYTHONPATH", "LD_PRELOAD"} & ALLOWED


@pytest.mark.spec("AGT-4")
def test_no_entry_of_the_path_begins_in_the_worktree() -> None:
    given = {"PATH": "node_modules/.bin::/usr/bin:.:/bin"}
    assert minimal(given, ())["PATH"] == "/usr/bin:/bin"
    assert candidates(b"claude", given["PATH"].encode()) == [b"/usr/bin/claude", b"/bin/claude"]
