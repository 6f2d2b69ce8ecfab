"""The demo's files and its folder (CLI `demo`): the same in both languages, a repository whatever git is told."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aiflow.adapters.agents.demo import FENCE, parts_of
from aiflow.adapters.demo_folder import CONFIG, SOURCE, DemoFolder
from aiflow.adapters.markdown_requests.scan import read_request
from aiflow.domain.request import Request
from aiflow.errors import AiflowError, BadInputError, EnvironmentProblemError
from aiflow.messages import LANGUAGES, Texts
from aiflow.messages.commands import command_line
from aiflow.settings import TABLE
from aiflow.usecases.project.demo import DemoPlace, make_demo, suggest
from conftest import somebody_else
from e2e.bench import git

REQUESTS = [f"requests/TODO-{number}.md" for number in range(1, 9)]
KANA = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


def files(language: str) -> dict[str, str]:
    return DemoFolder(None, {}).load(language)


def request(language: str, name: str) -> Request:
    read = read_request(Path(name).stem, name, files(language)[name].encode())
    assert isinstance(read, Request), read
    return read


def without_words(code: str) -> str:
    """Write code without what people read in it."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            node.values = [value for value in node.values if isinstance(value, ast.FormattedValue)]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


# --- what it is made of ----------------------------------------------------------------------------------------------


def test_both_languages_have_the_same_files_and_programs() -> None:
    english, japanese = files("en"), files("ja")
    assert list(english) == list(japanese)
    assert set(REQUESTS) <= set(english)
    for name in english:
        if name.endswith(".py"):
            assert without_words(english[name]) == without_words(japanese[name]), name
        else:
            assert not KANA.search(english[name]), name
            assert KANA.search(japanese[name]), name


@pytest.mark.spec("AGT-1")
@pytest.mark.parametrize("name", REQUESTS)
def test_both_languages_ask_for_the_same(name: str) -> None:
    english, japanese = request("en", name), request("ja", name)
    for field in ("id", "priority", "status", "depends_on", "labels", "created_at", "updated_at"):
        assert getattr(english, field) == getattr(japanese, field), field
    assert KANA.search(japanese.title)
    assert not KANA.search(english.title)
    bodies = (re.sub(r"\A---.*?^---$", "", files(language)[name], flags=re.M | re.S) for language in LANGUAGES)
    parts = [parts_of({"request": {"title": "", "body": body}, "feedback": []}) for body in bodies]
    told = [[[(each.kind, each.path, each.attempt) for each in part.blocks] for part in half] for half in parts]
    assert told[0] == told[1]
    assert all(part.blocks for part in parts[0]), "it works without a person, too"


def test_every_fenced_block_is_one_that_the_agent_knows() -> None:
    for language in LANGUAGES:
        for name in REQUESTS:
            text = files(language)[name]
            assert text.count("\n```") == 2 * len(FENCE.findall(text)), name


# --- the folder ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_repository_has_one_commit_an_identity_and_tests_that_pass(tmp_path: Path, language: str) -> None:
    place: DemoPlace = DemoFolder(str(tmp_path / "a b/demo"), {})
    demo = make_demo(place, Texts(language))
    root = tmp_path / "a b/demo"
    assert demo.root == str(root)
    assert git(root, "log", "--format=%an %ae") == "aiflow demo demo@example.com"
    assert git(root, "branch", "--show-current") == "main"
    assert git(root, "status", "--porcelain", "--ignored") == ""
    assert {*git(root, "-c", "core.quotePath=false", "ls-files").splitlines()} == {*files(language), ".gitignore"}
    done = subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=root, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert git(root, "status", "--porcelain") == ""


def test_without_a_name_it_is_below_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    roots = [make_demo(DemoFolder(None, {}), Texts("en")).root for _ in range(2)]
    assert len(set(roots)) == 2
    for root in roots:
        assert Path(root).parent == tmp_path
        assert Path(root).name.startswith("aiflow-demo-")
        assert Path(root).stat().st_mode & 0o777 == 0o700


@pytest.mark.spec("GIT-1")
def test_no_git_settings_stand_in_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = tmp_path / "hooks/pre-commit"
    for path in (hook, tmp_path / "template/hooks/pre-commit"):
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\necho no >&2; exit 1\n")
        path.chmod(0o755)
    (tmp_path / "ignore").write_text("*.md\n*.py\naiflow.toml\n")
    (tmp_path / "attributes").write_text("* filter=none\n*.py eol=crlf\n")
    (tmp_path / "config").write_text(
        f"[init]\ndefaultBranch = trunk\ntemplateDir = {tmp_path}/template\n[commit]\ngpgSign = true\n"
        f"template = {tmp_path}/missing\n[gpg]\nprogram = false\n"
        f"[core]\nhooksPath = {tmp_path}/hooks\nautocrlf = true\nexcludesFile = {tmp_path}/ignore\n"
        f"attributesFile = {tmp_path}/attributes\n[user]\nuseConfigOnly = true\n"
        '[filter "none"]\nclean = false\nrequired = true\n'
    )
    (tmp_path / "outer").mkdir()
    git(tmp_path / "outer", "init", "-q")
    for name, value in {
        "GIT_CONFIG_GLOBAL": str(tmp_path / "config"),
        "GIT_DIR": str(tmp_path / "outer/.git"),
        "GIT_WORK_TREE": str(tmp_path / "outer"),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "LC_ALL": "C",
        "HOME": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    root = Path(make_demo(DemoFolder(str(tmp_path / "outer/demo"), {}), Texts("ja")).root)
    for name in [name for name in os.environ if name.startswith("GIT_") or name == "HOME"]:
        monkeypatch.delenv(name)
    assert git(root, "rev-parse", "--show-toplevel") == str(root)
    assert git(root, "rev-list", "--count", "main") == "1"
    assert git(root, "cat-file", "blob", "main:todo.py") + "\n" == files("ja")["todo.py"]
    assert (root / "todo.py").read_text("utf-8") == files("ja")["todo.py"]
    assert not (root / ".git/hooks").exists()
    assert git(tmp_path / "outer", "status", "--porcelain") == "?? demo/"
    for name, value in CONFIG.items():
        assert git(root, "config", "--local", name) == value


def test_an_empty_folder_will_do_and_any_other_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    make_demo(DemoFolder(str(tmp_path / "empty"), {}), Texts("en"))
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/.hidden").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    before = sorted(path for path in tmp_path.rglob("*"))
    for name in ("empty", "file", "full", "link"):
        with pytest.raises(BadInputError) as refused:
            make_demo(DemoFolder(str(tmp_path / name), {}), Texts("en"))
        assert refused.value.reason_code == "FOLDER_IN_USE"
        assert refused.value.context["path"] == str(tmp_path / name)
    assert sorted(path for path in tmp_path.rglob("*")) == before
    with pytest.raises(EnvironmentProblemError) as refused_parent:
        make_demo(DemoFolder(str(tmp_path / "file/demo"), {}), Texts("en"))
    assert refused_parent.value.reason_code == "IO_ERROR"


def test_where_we_may_not_write_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o555)
    with somebody_else(tmp_path), pytest.raises(EnvironmentProblemError) as refused:
        make_demo(DemoFolder(str(tmp_path / "theirs/demo"), {}), Texts("en"))
    assert refused.value.reason_code == "IO_ERROR"
    assert list((tmp_path / "theirs").iterdir()) == []


@pytest.mark.parametrize("is_there", [True, False])
def test_a_demo_that_cannot_be_finished_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    root = tmp_path / "demo"
    if is_there:
        root.mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(AiflowError) as failed:
        make_demo(DemoFolder(str(root), {}), Texts("en"))
    assert failed.value.reason_code == "GIT_NOT_FOUND"
    assert (list(root.iterdir()) == []) if is_there else not root.exists()


# --- what to try next ------------------------------------------------------------------------------------------------


def commands(place: DemoFolder, *, has_run: bool = True) -> list[str]:
    demo = make_demo(place, Texts("en"))
    return [command_line(action) for each in suggest(demo, Texts("en"), has_run=has_run) for action in each.actions]


def programs(folder: Path, *names: str) -> str:
    """Make a folder with links to programs, to be all that is on the PATH."""
    folder.mkdir()
    for name in names:
        own = Path(sys.executable).parent / name
        (folder / name).symlink_to(own if own.exists() else f"/usr/bin/{name}")
    return str(folder)


def test_a_shell_that_finds_everything_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path / "bin", "git", "aiflow", "python3"))
    typed = commands(DemoFolder(str(tmp_path / "it's a demo"), {"XDG_STATE_HOME": "/var/state"}))
    assert typed[:2] == [f"cd '{tmp_path}/it'\"'\"'s a demo'", "aiflow list --all"]
    assert "aiflow next" not in typed
    assert typed[-1].startswith(f"rm -rf '{tmp_path}/it'\"'\"'s a demo' '/var/state/aiflow/it'")
    assert "python3 todo.py list" in typed
    unit = (tmp_path / "it's a demo/aiflow.toml").read_text("utf-8")
    assert 'unit = "python3 -m unittest -q"' in unit


def test_a_shell_that_finds_nothing_is_told_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path / "bin", "git"))
    typed = commands(DemoFolder(str(tmp_path / "demo"), {}), has_run=False)
    assert typed[0] == f'export PATH={Path(sys.executable).parent}:"$PATH"'
    assert typed[2:6] == ["aiflow list --all", "aiflow next", "aiflow forecast", "aiflow auto"]
    assert f"{sys.executable} todo.py list" in typed
    assert f'unit = "{sys.executable} -m unittest -q"' in (tmp_path / "demo/aiflow.toml").read_text("utf-8")


def test_without_a_program_beside_python_there_is_a_way_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = programs(tmp_path / "bin", "git")
    (tmp_path / "bin/py").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/py"))
    monkeypatch.setenv("PATH", path)
    first = commands(DemoFolder(str(tmp_path / "demo"), {}))[0]
    assert first == f'aiflow() {{ {tmp_path}/bin/py -m aiflow "$@"; }}'


def test_settings_in_the_environment_do_not_reach_the_demo(tmp_path: Path) -> None:
    environ = {"AIFLOW_AGENT_KIND": "codex", "AIFLOW_LANG": "ja", "AIFLOW_ACCEPT": "manual", "HOME": "/x"}
    place = DemoFolder(str(tmp_path / "demo"), environ)
    assert place.needs[0] == "unset AIFLOW_ACCEPT AIFLOW_AGENT_KIND"
    place.leave_settings()
    assert environ == {"HOME": "/x"}
    every = {name: "x" for setting in TABLE for name in setting.env_names}
    DemoFolder(None, every).leave_settings()
    assert every == {}


def test_the_demo_is_where_it_is_looked_for() -> None:
    assert {path.name for path in SOURCE.iterdir() if path.is_dir()} - {"__pycache__"} == set(LANGUAGES)
