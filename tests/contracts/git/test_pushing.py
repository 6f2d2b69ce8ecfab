"""Pushing a run's branch (GIT-1, ISS-9, ISS-11): as the user would, without force, and never waiting for an answer."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from aiflow.adapters.git.commits import GitRemote
from aiflow.domain.runs.worktree import Place
from aiflow.errors import AiflowError
from waiting import wait_until

BRANCH = "aiflow/GH-1/RUN-1"
PLACE = Place("RUN-1", "/nowhere", BRANCH, "main", "base")


def git(root: Path, *args: str) -> str:
    named = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    done = subprocess.run(["git", "-C", str(root), *named, *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def origin(repository: Path, tmp_path: Path) -> Path:
    """A bare repository that is the checkout's origin; the checkout has the run's branch."""
    bare = tmp_path / "origin.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
    git(repository, "commit", "-q", "--allow-empty", "-m", "first")
    git(repository, "branch", BRANCH)
    git(repository, "remote", "add", "origin", str(bare))
    return bare


def refused(remote: GitRemote) -> AiflowError:
    with pytest.raises(AiflowError) as caught:
        remote.push(PLACE)
    return caught.value


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.spec("GIT-1", "ISS-9")
def test_a_branch_is_pushed_as_it_is_and_twice_does_no_harm(repository: Path, origin: Path) -> None:
    git(repository, "tag", "-a", "-m", "mine", "v1")
    git(repository, "config", "push.followTags", "true")
    for _ in range(2):
        GitRemote(str(repository)).push(PLACE)
    assert git(origin, "rev-parse", BRANCH) == git(repository, "rev-parse", BRANCH)
    assert git(origin, "for-each-ref", "--format=%(refname)") == f"refs/heads/{BRANCH}"
    assert git(repository, "config", "--get-all", "push.followTags") == "true"


@pytest.mark.spec("GIT-1", "ISS-9", "ERR-1")
@pytest.mark.parametrize("what", ["no remote", "moved", "hook", "own hook", "gone"])
def test_a_push_that_is_refused_says_why_and_changes_nothing(repository: Path, origin: Path, what: str) -> None:
    told = {
        "no remote": "'origin' does not appear to be a git repository",
        "moved": "[rejected]",
        "hook": "not on a Friday",
        "own hook": "failed to push some refs",
        "gone": "does not appear to be a git repository",
    }
    if what == "no remote":
        git(repository, "remote", "remove", "origin")
    elif what == "moved":
        git(repository, "commit", "-q", "--allow-empty", "-m", "theirs")
        git(repository, "push", "-q", "origin", f"HEAD:refs/heads/{BRANCH}")
    elif what == "hook":
        script(origin / "hooks/update", "echo not on a Friday >&2; exit 1")
    elif what == "own hook":
        script(repository / ".git/hooks/pre-push", "exit 1")
    else:
        git(repository, "remote", "set-url", "origin", str(origin / "not-there"))
    before = git(origin, "for-each-ref") if origin.is_dir() else ""
    error = refused(GitRemote(str(repository), hooks=what == "own hook"))
    assert error.reason_code == "GIT_FAILED"
    assert told[what] in str(error.context["problem"])
    assert git(origin, "for-each-ref") == before


@pytest.mark.spec("ISS-9", "ISS-11")
def test_who_asks_for_a_password_gets_no_answer_and_nobody_waits(
    repository: Path, origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A remote that asks at the terminal, in a window, or by ssh's own question is refused at once."""
    asked = tmp_path / "asked"
    window = script(tmp_path / "window", f"echo asked >> {asked}; sleep 600")
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.setenv(name, str(window))
    git(repository, "config", "core.askPass", str(window))
    # What ssh does: it asks the program that its variables name, and where it may, the terminal.
    ssh = script(
        tmp_path / "ssh",
        '[ "$SSH_ASKPASS_REQUIRE" = force ] && "$SSH_ASKPASS" "Passphrase?" && exit 0\n'
        "( : < /dev/tty ) 2>/dev/null && exec sleep 600\necho 'Permission denied (publickey).' >&2; exit 255",
    )
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    git(repository, "remote", "set-url", "origin", "git@github.example:octo/demo.git")
    error = refused(GitRemote(str(repository), seconds=60))
    assert "Permission denied (publickey)" in str(error.context["problem"])
    # A remote by HTTP that wants a name and a password: git asks for them itself.
    helper = script(
        tmp_path / "git-remote-asks",
        'printf "url=https://github.example\\n\\n" | git credential fill >/dev/null || exit 128',
    )
    monkeypatch.setenv("PATH", f"{helper.parent}{os.pathsep}{os.environ['PATH']}")
    git(repository, "remote", "set-url", "origin", "asks::demo")
    error = refused(GitRemote(str(repository), seconds=60))
    assert "terminal prompts disabled" in str(error.context["problem"])
    assert not asked.exists()


@pytest.mark.spec("ISS-9")
def test_a_push_that_hangs_is_ended_with_all_that_it_started(
    repository: Path, origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    script(tmp_path / "git-remote-hangs", f"echo $$ > {started}; sleep 600")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    git(repository, "remote", "set-url", "origin", "hangs::demo")
    error = refused(GitRemote(str(repository), seconds=2))
    assert error.reason_code == "GIT_FAILED"
    assert "no end after 2 s" in str(error.context["problem"])
    pid = int(started.read_text(encoding="utf-8"))
    wait_until(lambda: not _is_there(pid))


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIG_DFL)
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.spec("ISS-11")
def test_the_token_is_neither_in_gits_configuration_nor_on_its_command_line(
    repository: Path, origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret0000000000000000000000000000")
    seen = tmp_path / "seen"
    ssh = script(tmp_path / "ssh", f'tr "\\0" " " < /proc/$PPID/cmdline >> {seen}; git config --list >> {seen}; exit 1')
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    git(repository, "remote", "set-url", "origin", "git@github.example:octo/demo.git")
    error = refused(GitRemote(str(repository), seconds=60))
    text = seen.read_text(encoding="utf-8") + str(error) + (repository / ".git/config").read_text(encoding="utf-8")
    assert "push" in text
    assert "ghp_secret" not in text
