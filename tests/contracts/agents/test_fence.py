"""The fence around a call (AGT-4, SEC): what each role may write, by settings and by what the machine can."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.agents.call.command import Launch, Surroundings
from aiflow.adapters.agents.call.fence import CallFence, raise_fence, tmp_of
from aiflow.adapters.processes import confine
from aiflow.adapters.secrets import Masker
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, Brief

OWN = ("/home/me/.agent",)


@dataclass
class Machine:
    """Processes of a machine that confines, or does not."""

    how: str | None = "landlock"

    def run(self, program: object, output: object, should_stop: object, errors: object = None) -> Any:
        raise AssertionError(program)

    def confinement(self) -> str | None:
        return self.how


class Ground:
    """A worktree and a call's folder in a temporary place."""

    def __init__(self, root: Path) -> None:
        self.worktree, self.scratch = str(root / "work tree's"), str(root / "scratch")
        os.makedirs(self.worktree)
        os.makedirs(self.scratch)
        self.tmp = tmp_of(self.scratch)

    def fence(
        self,
        role: Role = Role.IMPLEMENTER,
        own: tuple[str, ...] | None = OWN,
        how: str | None = "landlock",
        *,
        caches: str = "",
        environ: dict[str, str] | None = None,
        argv: tuple[str, ...] = ("agent",),
        **more: Any,
    ) -> CallFence:
        brief = Brief("RQ-1", "t", "b", "P1", ())
        call = AgentCall(role, brief, "RUN-1", self.worktree, None, (), 1)
        known = {"HOME": "/home/me", **(environ or {})}
        around = Surroundings("/project", "/results", "/calls", known, Machine(how), Masker({}), caches)
        return raise_fence(call, self.scratch, own, Launch(argv, 9, 9, **more), around)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@pytest.mark.spec("AGT-4", "SEC")
def test_the_implementer_writes_the_worktree_and_nobody_else_does(ground: Ground) -> None:
    assert ground.fence().writable == (ground.worktree, ground.tmp, *OWN)
    assert ground.fence(Role.PLANNER).writable == (ground.tmp, *OWN)
    assert ground.fence(Role.QA).writable == (ground.tmp, *OWN)


@pytest.mark.spec("AGT-4")
def test_a_call_has_a_temporary_folder_of_its_own_confined_or_not(ground: Ground) -> None:
    for fence in (ground.fence(), ground.fence(own=None), ground.fence(sandbox="off"), ground.fence(how=None)):
        names = ("TMPDIR", "TMP", "TEMP", "CLAUDE_CODE_TMPDIR")
        assert {fence.variables[name] for name in names} == {ground.tmp}
    assert os.stat(ground.tmp).st_mode & 0o777 == 0o700


@pytest.mark.spec("AGT-4", "CFG")
def test_more_may_be_written_where_the_settings_say_so(ground: Ground) -> None:
    fence = ground.fence(Role.QA, writable=("~/.cache", "~", "/opt/x/", "../beside", "~other"))
    added = ("/home/me/.cache", "/home/me", "/opt/x", "/beside", "/project/~other")
    assert fence.writable == (ground.tmp, *added, *OWN)


@pytest.mark.spec("AGT-4", "SEC")
def test_who_brings_a_sandbox_and_who_wants_none_is_not_confined(ground: Ground) -> None:
    for fence in (
        ground.fence(own=None, sandbox="required"),
        ground.fence(sandbox="off"),
        ground.fence(own=None, how=None),
    ):
        assert (fence.writable, fence.note, fence.refusal) == (None, "", "")
        assert "CLAUDE_CODE_SHELL_PREFIX" not in fence.variables


@pytest.mark.spec("AGT-4", "SEC")
def test_a_machine_without_sandbox_is_noted_or_refused(ground: Ground) -> None:
    noted, refused = ground.fence(how=None), ground.fence(how=None, sandbox="required")
    assert (noted.writable, bool(noted.note), noted.refusal) == (None, True, "")
    assert (refused.writable, refused.note, bool(refused.refusal)) == (None, "", True)


@pytest.mark.spec("AGT-4", "SEC")
@pytest.mark.skipif(not confine.is_available(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/zsh", "/usr/bin/fish", ""])
def test_what_claude_runs_for_the_model_cannot_write_claudes_own_folder(ground: Ground, shell: str) -> None:
    own = Path(ground.scratch, "own")
    own.mkdir()
    wrapper = ground.fence(own=(str(own),)).variables["CLAUDE_CODE_SHELL_PREFIX"]
    if shell == "/bin/zsh" and not os.path.exists(shell):
        shell = ""
    script = f'shopt -s extglob 2>/dev/null; echo "it\'s" > a.txt; echo x > $TMPDIR/t; echo x > {own}/hooks; echo ok >| b; exit 5'
    environ = {"PATH": os.environ["PATH"], "TMPDIR": ground.tmp, **({"SHELL": shell} if shell else {})}
    done = subprocess.run(
        [wrapper, script], cwd=ground.worktree, env=environ, capture_output=True, check=False, timeout=30
    )
    assert (done.returncode, b"permission denied" in done.stderr.lower()) == (5, True), done.stderr
    assert Path(ground.worktree, "a.txt").read_text() == "it's\n"
    assert os.listdir(own) == []
    # Nor can the wrapper be changed by what it runs.
    subprocess.run(
        [wrapper, f"echo > {wrapper}; rm -f {wrapper}"], env=environ, capture_output=True, check=False, timeout=30
    )
    assert "confine" in Path(wrapper).read_text()


CACHES = {
    "npm_config_cache": "npm",
    "UV_CACHE_DIR": "uv",
    "PIP_CACHE_DIR": "pip",
    "GOCACHE": "go-build",
    "GOMODCACHE": "go-mod",
    "CARGO_HOME": "cargo",
}


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize("role", [Role.IMPLEMENTER, Role.QA])
def test_tools_keep_their_caches_in_a_folder_of_the_project_that_can_be_written(
    ground: Ground, tmp_path: Path, role: Role
) -> None:
    caches = str(tmp_path / "state/caches")
    fence = ground.fence(role, caches=caches)
    assert fence.writable is not None
    assert caches in fence.writable
    assert os.stat(caches).st_mode & 0o777 == 0o700
    assert {name: fence.variables[name] for name in CACHES} == {
        name: f"{caches}/{folder}" for name, folder in CACHES.items()
    }
    # Who is not confined has the user's own caches.
    for other in (ground.fence(caches=caches, sandbox="off"), ground.fence(caches=caches, how=None)):
        assert CACHES.keys() & other.variables.keys() == set()


@pytest.mark.spec("AGT-4", "CFG")
def test_what_the_user_set_and_where_an_agent_is_started_from_stays(ground: Ground, tmp_path: Path) -> None:
    caches = str(tmp_path / "caches")
    given = ground.fence(caches=caches, environ={"UV_CACHE_DIR": "/mine"}, env_names=("UV_CACHE_DIR", "GOCACHE"))
    assert CACHES.keys() - given.variables.keys() == {"UV_CACHE_DIR"}
    for starter, name in (("npx", "npm_config_cache"), ("/usr/bin/uvx", "UV_CACHE_DIR")):
        assert CACHES.keys() - ground.fence(caches=caches, argv=(starter, "agent")).variables.keys() == {name}


@pytest.mark.spec("AGT-4", "SEC")
@pytest.mark.skipif(not confine.is_available(), reason="this kernel has no Landlock")
def test_a_confined_command_writes_its_cache_and_not_the_users(ground: Ground, tmp_path: Path) -> None:
    caches, home = tmp_path / "caches", tmp_path / "home"
    (home / ".cache").mkdir(parents=True)
    fence = ground.fence(caches=str(caches))
    script = 'mkdir -p "$PIP_CACHE_DIR" && echo x > "$PIP_CACHE_DIR/x"; echo x > "$HOME/.cache/x"'
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), **fence.variables}
    done = subprocess.run(
        [fence.variables["CLAUDE_CODE_SHELL_PREFIX"], script],
        cwd=ground.worktree,
        env=environ,
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert b"Permission denied" in done.stderr
    assert ((caches / "pip/x").exists(), os.listdir(home / ".cache")) == (True, [])
