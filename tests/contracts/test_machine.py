"""The machine a run works on (GIT-1, GIT-4, AGT-4): where worktrees go, copies, shell commands, room."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from aiflow.adapters.machine import LocalWorkshop, checkout_folder, state_home
from aiflow.adapters.processes.environment import minimal
from aiflow.domain.programs import End, Ended, Program
from aiflow.errors import EnvironmentProblemError
from aiflow.ports import Workshop
from aiflow.settings import SettingValue, Source, settle
from conftest import somebody_else
from run_builders import PLACE


class Recorder:
    """Starts nothing, remembers what it should have started."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    def run(self, program: Program, output: object, should_stop: object, errors: object = None) -> Ended:
        self.programs.append(program)
        return Ended(End.EXITED, 7)

    def confinement(self) -> None:
        return None


class Bench:
    """A checkout, a worktree, and the workshop between them."""

    def __init__(self, folder: Path) -> None:
        self.root, self.target = folder / "checkout", folder / "worktree"
        self.root.mkdir()
        self.target.mkdir()
        self.environ = {"HOME": str(folder / "home"), "PATH": os.environ["PATH"], "API_TOKEN": "x", "MINE": "yes"}
        self.processes = Recorder()

    def workshop(self, **values: SettingValue) -> LocalWorkshop:
        settings = settle({Source.FILE: {name.replace("__", "."): value for name, value in values.items()}})
        return LocalWorkshop(str(self.root), self.environ, settings, self.processes)

    def copy(self, *paths: str) -> tuple[str, ...]:
        workshop: Workshop = self.workshop()
        return workshop.copy(paths, str(self.target))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# --- where worktrees go ----------------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-1")
@pytest.mark.parametrize(
    ("environ", "home"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/h"}, "/state/aiflow"),
        ({"HOME": "/h"}, "/h/.local/state/aiflow"),
        ({"XDG_STATE_HOME": "", "HOME": "/h"}, "/h/.local/state/aiflow"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/aiflow"),
    ],
)
def test_the_state_directory_is_the_users_and_absolute(environ: dict[str, str], home: str) -> None:
    assert str(state_home(environ)) == home


@pytest.mark.spec("GIT-1")
def test_every_checkout_has_a_folder_of_its_own_whatever_path_leads_to_it(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    for name in ("a/project", "b/project"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a/project")
    one, other, linked = (checkout_folder(str(tmp_path / name), environ) for name in ("a/project", "b/project", "link"))
    assert one != other
    assert one == linked
    assert one.name.startswith("project-")


@pytest.mark.spec("GIT-1")
def test_a_worktree_is_outside_the_checkout(bench: Bench) -> None:
    path = bench.workshop().worktree_path("RUN-1")
    assert path.endswith("/worktrees/RUN-1")
    assert not path.startswith(str(bench.root))


# --- copies ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-4")
def test_files_and_folders_are_copied_and_what_is_not_there_is_passed_over(bench: Bench) -> None:
    (bench.root / "deep/er").mkdir(parents=True)
    (bench.root / "deep/er/file").write_text("x")
    (bench.root / ".env").write_text("KEY=1")
    (bench.root / ".env").chmod(0o600)
    (bench.root / "tool").write_text("#!/bin/sh")
    (bench.root / "tool").chmod(0o755)
    assert bench.copy(".env", "missing", "deep", "deep/er/file", "tool") == (".env", "deep", "deep/er/file", "tool")
    assert (bench.target / "deep/er/file").read_text() == "x"
    assert (bench.target / ".env").stat().st_mode & 0o777 == 0o600
    assert os.access(bench.target / "tool", os.X_OK)
    assert bench.copy() == ()


@pytest.mark.spec("GIT-4")
def test_a_single_file_of_a_folder_brings_only_itself(bench: Bench) -> None:
    (bench.root / "a").mkdir()
    (bench.root / "a/one").write_text("1")
    (bench.root / "a/two").write_text("2")
    bench.copy("a/one")
    assert [path.name for path in (bench.target / "a").iterdir()] == ["one"]


@pytest.mark.spec("GIT-4", "SEC")
@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "a/../../secret", "out", "out/secret", ".git", ".aiflow", ".", "", "a/.."]
)
def test_nothing_outside_the_checkout_is_copied_nor_gits_own_files_nor_all_of_it(bench: Bench, path: str) -> None:
    (bench.root.parent / "secret").write_text("x")
    (bench.root / "out").symlink_to(bench.root.parent)
    for folder in ("a", ".git", ".aiflow"):
        (bench.root / folder).mkdir()
    with pytest.raises(EnvironmentProblemError) as refused:
        bench.copy(path)
    assert refused.value.reason_code == "SETUP_FAILED"
    assert refused.value.context["path"] == path
    assert list(bench.target.iterdir()) == []


@pytest.mark.spec("GIT-4", "RUN-6")
def test_copying_again_after_a_stop_is_no_trouble(bench: Bench) -> None:
    modules = bench.root / "node_modules"
    (modules / ".bin").mkdir(parents=True)
    (modules / "tool.js").write_text("1")
    (modules / ".bin/tool").symlink_to("../tool.js")
    (modules / "linked").symlink_to(".bin", target_is_directory=True)
    (modules / "broken").symlink_to("nowhere")
    (bench.root / "link").symlink_to("node_modules/tool.js")
    paths = ("node_modules", "link")
    assert bench.copy(*paths) == paths
    (modules / "tool.js").write_text("2")
    (modules / ".bin/tool").unlink()
    (modules / ".bin/tool").symlink_to("../other.js")
    assert bench.copy(*paths) == paths
    assert (bench.target / "node_modules/tool.js").read_text() == "2"
    assert os.readlink(bench.target / "node_modules/.bin/tool") == "../other.js"
    assert os.readlink(bench.target / "node_modules/broken") == "nowhere"
    assert (bench.target / "link").is_symlink()


@pytest.mark.spec("GIT-4", "ERR-3")
def test_what_cannot_be_copied_is_a_problem_with_a_name(bench: Bench) -> None:
    (bench.root / "a").mkdir()
    os.mkfifo(bench.root / "a/pipe")
    with pytest.raises(EnvironmentProblemError):
        bench.copy("a")


# --- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.spec("AGT-4")
def test_a_shell_command_runs_in_the_worktree_with_its_limits_and_little_of_the_environment(bench: Bench) -> None:
    settings: dict[str, SettingValue] = {
        "tests__timeout_seconds": 12,
        "tests__idle_seconds": 5,
        "tests__env": ("MINE",),
    }
    ended = bench.workshop(**settings).shell("make test && echo 'a b'", PLACE, print, lambda: False)
    assert ended == Ended(End.EXITED, 7)
    [program] = bench.processes.programs
    assert program.argv == ("/bin/sh", "-c", "make test && echo 'a b'")
    assert (program.cwd, program.run_id, program.stdin) == (PLACE.path, PLACE.run_id, b"")
    assert (program.timeout_seconds, program.idle_seconds) == (12.0, 5.0)
    assert program.environ == minimal(bench.environ, ("MINE",))
    assert "API_TOKEN" not in program.environ


@pytest.mark.spec("DOC-1")
@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("sh -c true", None),
        ("no-such-program --x", "no-such-program"),
        ("CI=1 A=b no-such-program", "no-such-program"),
        ("CI=1 sh", None),
        ("./script.sh", None),
        ("tools/script.sh x", None),
        ("./missing.sh", "./missing.sh"),
        ("'no such program' x", "no such program"),
        ("/bin/sh x", None),
        ("/no/such/program", "/no/such/program"),
        # the shell's own business, which only the shell can judge
        *[
            (command, None)
            for command in ("cd a && x", "$TOOL x", "(cd a; x)", "[ -f x ]", "if true; then x; fi", "! x")
        ],
        *[(command, None) for command in ("", "   ", "A=b", "'unclosed", "{ x; }", "`x`", "true")],
    ],
)
def test_a_program_that_cannot_be_found_is_named(bench: Bench, command: str, missing: str | None) -> None:
    (bench.root / "tools").mkdir()
    (bench.root / "tools/script.sh").write_text("")
    (bench.root / "script.sh").write_text("")
    assert bench.workshop().find_program(command) == missing


@pytest.mark.spec("DOC-1", "LCK-9")
def test_room_and_file_system_are_told_before_anything_is_there(bench: Bench) -> None:
    where, free = bench.workshop().least_room()
    assert 0 < free <= shutil.disk_usage(bench.root).total
    assert os.path.isabs(where)
    assert bench.workshop().file_system() is None
    assert not (bench.root.parent / "home").exists()


@pytest.mark.spec("DOC-1", "ERR-3")
def test_a_folder_where_no_worktree_can_be_made_is_named(bench: Bench, tmp_path: Path) -> None:
    assert bench.workshop().unwritable() is None
    state = tmp_path / "state"
    state.mkdir(mode=0o555)
    bench.environ["XDG_STATE_HOME"] = str(state)
    with somebody_else(tmp_path):
        assert bench.workshop().unwritable() == (str(state), "Permission denied")
    (tmp_path / "file").touch()
    bench.environ["XDG_STATE_HOME"] = str(tmp_path / "file/below")
    assert bench.workshop().unwritable() == (str(tmp_path / "file"), "Not a directory")
