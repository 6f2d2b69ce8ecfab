"""What a hostile or unlucky world does: links, odd streams and locales, damaged state, endless and huge input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aiflow.adapters.locks.lock_files import LockFiles
from aiflow.adapters.markdown_requests.patch import PatchError, patch
from aiflow.adapters.markdown_requests.scan import read_request
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.adapters.run_folders.run_files import RunFiles
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.request import InvalidRequest, ProblemKind, Request, RequestId
from aiflow.errors import AiflowError
from builders import write_request
from conftest import Program, somebody_else

READY = "---\nstatus: ready\n---\n"


@pytest.fixture
def project(repository: Path) -> Path:
    write_request(repository, "RQ-1", status="ready")
    return repository


def shell(cwd: Path, script: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in which `$A` is the program."""
    environ = {**Program(cwd).environ, **env}
    script = f'A="{sys.executable} -m aiflow"\n{script}'
    return subprocess.run(
        ["bash", "-c", script], cwd=cwd, env=environ, capture_output=True, text=True, timeout=60, check=False
    )


# --- nothing outside is written --------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-3", "REQ-4")
@pytest.mark.parametrize("target", ["outside.md", "repository/.git/config", "repository/.aiflow/x.md"])
def test_a_link_that_leads_out_is_never_written_through(project: Path, aiflow: Program, target: str) -> None:
    victim = project.parent / target
    victim.parent.mkdir(exist_ok=True)
    victim.write_text(READY)
    (project / "requests/X.md").symlink_to(victim)
    assert aiflow.json("set", "X", "status=done", code=2)["error"]["reason_code"] == "REQUEST_NOT_FOUND"
    assert victim.read_text() == READY
    assert aiflow.json("list")["invalid"][0]["problems"][0]["message"] == "the link points outside the repository"


def test_init_does_not_follow_links_out_of_the_repository(repository: Path, aiflow: Program) -> None:
    outside = repository.parent / "outside"
    outside.mkdir()
    (repository / "requests").symlink_to(outside)
    aiflow("init", code=3)
    assert os.listdir(outside) == []


@pytest.mark.spec("LCK-1", "RUN-1", "ERR-3")
@pytest.mark.parametrize(
    "name", ["runs", ".aiflow", ".aiflow/locks", ".aiflow/activity", ".aiflow/control", ".aiflow/tmp"]
)
def test_a_link_in_the_place_of_a_folder_of_our_own_is_refused(project: Path, aiflow: Program, name: str) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).symlink_to(outside)
    for command in (["next"], ["list"], ["run", "RQ-1"], ["doctor"], ["set", "RQ-1", "priority=P0"], ["locks"]):
        refused = aiflow.json(*command, code=3)["error"]
        assert (refused["reason_code"], refused["context"]["path"]) == ("LINK_REFUSED", str(project / name))
    assert f"{project / name} is a symbolic link" in aiflow("next", code=3).stderr
    japanese = aiflow("next", code=3, env={"AIFLOW_LANGUAGE": "ja"}).stderr
    assert "シンボリックリンク" in japanese
    assert os.listdir(outside) == []


@pytest.mark.spec("RUN-1", "REQ-5")
@pytest.mark.parametrize("name", ["runs/RQ-1", "runs/RQ-1/RUN-20260101-000000-abcdef/stage.json"])
def test_a_link_in_the_place_of_a_run_is_not_followed(project: Path, aiflow: Program, name: str) -> None:
    run_id = "RUN-20260101-000000-abcdef"
    outside = project.parent / "outside"
    stage = {"request_id": "RQ-1", "run_id": run_id, "state": "IMPLEMENTING", "current_step_id": None}
    (outside / run_id).mkdir(parents=True)
    (outside / run_id / "stage.json").write_text(json.dumps(stage))
    (project / name).parent.mkdir(parents=True)
    target = outside if name == "runs/RQ-1" else outside / run_id / "stage.json"
    (project / name).symlink_to(target)
    shown = aiflow.json("runs", "RQ-1")["runs"]
    assert [(run["state"], run["reason_code"]) for run in shown] == (
        [] if target is outside else [("FAILED", "RUN_LOST")]
    )
    assert os.listdir(outside) == [run_id]


@pytest.mark.spec("REQ-3")
def test_a_file_that_an_editor_has_just_emptied_is_left_alone(project: Path, aiflow: Program) -> None:
    path = project / "requests/RQ-1.md"
    text = path.read_text()
    with path.open("w") as editor:
        assert aiflow.json("set", "RQ-1", "status=done", code=2)["error"]["reason_code"] == "REQUEST_INVALID"
        editor.write(text)
    assert path.read_text() == text


@pytest.mark.spec("REQ-3")
@pytest.mark.parametrize("labels", ["[&team core]", "\n  - &team core", "[!!str core]"])
def test_an_anchor_that_another_key_uses_is_not_taken_away(labels: str) -> None:
    with pytest.raises(PatchError):
        patch(f"---\nlabels: {labels}\nowner: x\n---\n", {"labels": ("x",)})


@pytest.mark.spec("REQ-3")
def test_a_write_protected_file_is_not_replaced(project: Path) -> None:
    path = project / "requests/RQ-1.md"
    path.chmod(0o444)
    (project / ".aiflow").mkdir()
    for folder in (project / "requests", project / ".aiflow"):
        folder.chmod(0o777)
    with somebody_else(project), pytest.raises(AiflowError) as caught:
        MarkdownRequests(project).edit(RequestId("RQ-1"), {"status": Change("done")})
    assert caught.value.reason_code == "IO_ERROR"
    assert "status: ready" in path.read_text()


@pytest.mark.spec("ERR-4")
def test_a_journal_that_cannot_be_written_is_a_warning(project: Path, aiflow: Program) -> None:
    (project / ".aiflow").mkdir()
    (project / ".aiflow/activity").write_text("in the way")
    done = aiflow("set", "RQ-1", "priority=P0")
    assert "not recorded in the journal" in done.stderr
    assert "priority: P0" in (project / "requests/RQ-1.md").read_text()


def test_a_bind_mount_of_the_requests_folder_can_be_written(project: Path) -> None:
    unshare = "unshare -m" if os.geteuid() == 0 else "unshare -rm"
    done = shell(
        project,
        f"{unshare} bash -c 'mount --bind requests requests; {sys.executable} -m aiflow set RQ-1 priority=P0; {sys.executable} -m aiflow new T -b x'",
    )
    assert done.returncode == 0, done.stderr
    assert "priority: P0" in (project / "requests/RQ-1.md").read_text()


# --- streams, locales, folders ---------------------------------------------------------------------------------------


@pytest.mark.spec("ERR-3")
@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("$A list >&-", 0),
        ("$A next --json >&-", 0),
        ("$A why nope 2>&-", 2),
        ("$A why nope 2>/dev/full", 2),
        ("$A why nope --json >/dev/full", 2),
        ("$A set RQ-1 status=done >&-", 0),
        ("$A new T <&-", 0),
        ("$A list <&- >&- 2>&-", 0),
        ("mkdir d; cd d; rmdir ../d; $A list", 3),
        ("mkdir d; cd d; rmdir ../d; $A --version", 0),
        ("ln -s a b; ln -s b a; $A -C a list", 3),
        ("rm -r requests; ln -s requests requests; $A list", 3),
        ("$A list --lang", 2),
        ("$A new T -b $'\\xff'", 2),
        ("$A set RQ-1 labels=$'\\xff'", 2),
        ("printf 'a\\0b' | $A new T -F -", 2),
        ("head -c 6000000 /dev/zero | tr '\\0' x | $A new T -F -", 2),
    ],
)
def test_odd_streams_and_folders_get_an_exit_code_and_no_traceback(project: Path, script: str, code: int) -> None:
    done = shell(project, script)
    assert (done.returncode, "Traceback" in done.stderr + done.stdout) == (code, False), done


@pytest.mark.spec("SEL-1")
@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "shift_jis"},
    ],
)
def test_the_locale_changes_neither_the_answer_nor_its_encoding(project: Path, env: dict[str, str]) -> None:
    write_request(project, "日本語", "---\nstatus: ready\npriority: P0\n---\n# Café 😀\n")
    expected = shell(project, "$A next --json").stdout
    assert json.loads(expected)["next"]["title"] == "Café 😀"
    assert shell(project, "$A next --json", **env).stdout == expected


@pytest.mark.spec("LCK-5", "SEL-1")
def test_damaged_locks_stop_nothing(project: Path, aiflow: Program) -> None:
    locks = project / ".aiflow/locks"
    locks.mkdir(parents=True)
    (locks / "request.RQ-1.lock.json").write_text('{"process_started_at": 1' + "0" * 400 + "}")
    (locks / "request.RQ-2.lock.json").symlink_to("/dev/zero")
    os.mkfifo(locks / "request.RQ-3.lock.json")
    os.mkfifo(locks / "queue.lock.json")
    assert aiflow.json("next")["excluded"][0]["reason_code"] == "REQUEST_LOCKED"


@pytest.mark.spec("SEL-1")
@pytest.mark.parametrize(
    ("folder", "look"),
    [(".aiflow/locks", lambda root: LockFiles(root).held()), ("runs", lambda root: RunFiles(root).latest())],
)
def test_who_may_not_look_does_not_guess(
    project: Path, folder: str, look: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / folder).mkdir(parents=True)

    def refuse(_path: object) -> list[str]:
        raise PermissionError(13, "denied")

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(AiflowError) as caught:
        look(project)
    assert caught.value.reason_code == "IO_ERROR"


def test_a_pipe_in_the_place_of_the_settings_does_not_hang(project: Path, aiflow: Program) -> None:
    os.mkfifo(project / "aiflow.toml")
    assert aiflow.json("next", code=3)["error"]["reason_code"] == "IO_ERROR"


@pytest.mark.spec("CFG")
@pytest.mark.parametrize(
    "text",
    [
        "[queue]\npoll_ms = 1" + "0" * 5000,
        "[limits]\nrun_cost_usd = 1" + "0" * 400,
        "[server]\nport = 0x" + "f" * 5000,
        "[limits]\nrun_cost_usd = inf",
    ],
)
def test_numbers_beyond_sense_are_told_with_file_and_key(project: Path, aiflow: Program, text: str) -> None:
    (project / "aiflow.toml").write_text(text)
    done = aiflow("next", code=2)
    assert "aiflow.toml" in done.stderr
    assert len(done.stderr) < 1000


@pytest.mark.spec("SEL-4")
def test_a_stray_file_among_the_runs_is_no_run(project: Path) -> None:
    folder = project / "runs/RQ-1"
    (folder / "RUN-20260101-000000-aaaaaa").mkdir(parents=True)
    (folder / "RUN-20260101-000000-aaaaaa/stage.json").write_text('{"state": "DONE"}')
    (folder / ".DS_Store").write_text("")
    assert RunFiles(project).latest()[RequestId("RQ-1")].state == "DONE"


@pytest.mark.parametrize(
    "command",
    [["why", "BAD"], ["show", "BAD"], ["set", "BAD", "status=ready"], ["set", "BAD", "status=ready", "--expect", "x"]],
)
def test_no_escape_sequence_gets_through_any_command(project: Path, aiflow: Program, command: list[str]) -> None:
    write_request(project, "BAD", '---\nstatus: "\\e]0;owned\\a\\e[2J"\n---\n')
    done = shell(project, "$A " + " ".join(command))
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("title", ["ログイン　画面", "家族 👨‍👩‍👧 の絵", "Learn C #", "# twice", "Trailing ##"])
def test_a_title_is_kept_as_it_was_given(project: Path, aiflow: Program, title: str) -> None:
    made = aiflow.json("new", title, "-b", "x")
    assert aiflow.json("show", made["request_id"])["title"] == title
    assert title in aiflow("list").stdout


def test_a_draft_that_was_kept_can_be_used_as_it_is(project: Path, aiflow: Program) -> None:
    draft = project.parent / "draft.md"
    draft.write_text("---\npriority: P0\nstatus: draft\n---\n\n# From a draft\n\ntext\n")
    made = aiflow.json("new", "-F", str(draft))
    assert (project / made["path"]).read_text() == draft.read_text()
    assert made["priority"] == "P0"


def test_a_draft_in_another_encoding_is_kept(project: Path, aiflow: Program) -> None:
    editor = project.parent / "editor"
    editor.write_text("#!/bin/sh\nprintf '# Caf\\351\\n' > \"$1\"\n")
    editor.chmod(0o755)
    done = aiflow("new", "-e", "Foo", code=2, env={"EDITOR": str(editor)})
    kept = next((project / ".aiflow/drafts").iterdir())
    assert kept.read_bytes() == b"# Caf\xe9\n"
    assert kept.name in done.stderr
    aiflow("new", "-e", "Foo", code=2, env={"EDITOR": "false"})
    assert len(list((project / ".aiflow/drafts").iterdir())) == 1


# --- one bad file does not stall everything --------------------------------------------------------------------------


def seconds(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


@pytest.mark.spec("REQ-4", "PRF-1")
@pytest.mark.parametrize(
    "make",
    [
        lambda n: "title: x\n" + "a" * n,
        lambda n: "title: x\n" + "日" * n,
        lambda n: f"---\ncreated_at: x{' ' * n}x\n---\n",
        lambda n: READY + "```\nx\n```\n" * (n // 10) + "# T\n",
        lambda n: "---\n'a': 1\n" + "".join(f"k{i}: v\n" for i in range(n // 20)) + "---\n",
        lambda n: "---\n" + "id: a\n" * (n // 10) + "---\n",
        lambda n: "---\nlabels: [" + "[" * n + "\n---\n",
        lambda n: READY + "# " * n,
        lambda n: READY + "`" * n,
    ],
)
def test_reading_any_file_costs_no_more_than_its_length(make: Callable[[int], str]) -> None:
    """Eight times the length may cost eight times as much, not sixty-four times; the margin is for noise."""
    small, large = make(8_000).encode(), make(64_000).encode()
    read_request("X", "requests/X.md", small)
    times = [
        (
            min(seconds(lambda: read_request("X", "requests/X.md", small)) for _ in range(3)),
            min(seconds(lambda: read_request("X", "requests/X.md", large)) for _ in range(3)),
        )
    ]
    quick, slow = times[0]
    assert slow < max(quick * 24, 0.5)


@pytest.mark.spec("REQ-4")
def test_many_files_with_one_id_are_told_in_few_words(project: Path) -> None:
    for number in range(300):
        write_request(project, f"copy-{number}", id="RQ-1", status="ready")
    _, broken = MarkdownRequests(project).load()
    assert len(broken) == 301
    assert all(len(str(file.problems)) < 400 for file in broken)


@pytest.mark.spec("SEL-5")
def test_why_on_a_long_chain_stays_readable(project: Path, aiflow: Program) -> None:
    for number in range(400):
        write_request(project, f"C{number}", status="ready", depends_on=f"[C{number + 1}]")
    text = aiflow("why", "C0").stdout
    assert max(map(len, text.splitlines())) < 120


@pytest.mark.timing
@pytest.mark.spec("CFG")
def test_a_settings_file_full_of_mistakes_is_told_in_time(
    project: Path, aiflow: Program, allowed: Callable[[float], float]
) -> None:
    (project / "aiflow.toml").write_text("".join(f"x{n} = {n}\n" for n in range(2000)))
    begin = time.monotonic()
    done = aiflow("next", code=2)
    assert "aiflow.toml:1999: x1998: there is no such setting" in done.stderr
    assert time.monotonic() - begin < allowed(20)


# --- reader and writer agree -----------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-1", "REQ-3")
def test_what_is_too_large_to_write_is_too_large_to_run() -> None:
    data = ("---\nstatus: ready\n" + "".join(f"key{n:05d}: value\n" for n in range(5000)) + "---\n").encode()
    result = read_request("BIG", "requests/BIG.md", data)
    assert isinstance(result, InvalidRequest)
    assert result.problems[0].kind is ProblemKind.METADATA_TOO_LARGE


@pytest.mark.spec("REQ-2")
@pytest.mark.parametrize("text", ["2025-12-14t10:00:00z", "2025-12-14T10:00:00Z"])
def test_yamls_own_ways_to_write_a_stamp_are_read(text: str) -> None:
    assert isinstance(read_request("X", "requests/X.md", f"---\ncreated_at: {text}\n---\n".encode()), Request)


@pytest.mark.spec("REQ-4")
def test_a_duplicate_in_the_other_unicode_form_is_noticed(project: Path) -> None:
    write_request(project, "é", status="ready")
    write_request(project, "foo", id="e\u0301", status="ready")
    _, broken = MarkdownRequests(project).load()
    assert [file.id for file in broken] == ["é", "é"]
