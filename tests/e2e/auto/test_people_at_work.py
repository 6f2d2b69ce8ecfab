"""A person works in the checkout while a night works on the backlog: branches, edits, a pull, an edited request."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.bench import Bench, git
from waiting import wait_until

# The implementer says which request it is at, and waits until it is let go.
HELD = (
    "name = call['request']['id']\n"
    "(HERE / f'at.{name}').touch()\n"
    "while not (HERE / f'go.{name}').exists(): time.sleep(0.02)\n"
    "write(f'{name}.txt', 'done\\n'); done()"
)


def wait_for(bench: Bench, process: subprocess.Popen[str], request_id: str) -> None:
    """Come back when the night is at a request."""
    wait_until(lambda: (bench.agent.folder / f"at.{request_id}").exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()


def let_go(bench: Bench, *request_ids: str) -> None:
    for request_id in request_ids:
        (bench.agent.folder / f"go.{request_id}").touch()


def end(process: subprocess.Popen[str], code: int = 0) -> Any:
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, out + err
    assert "Traceback" not in err
    return json.loads(out)


def configure(bench: Bench, text: str = "", before: str = "") -> None:
    """Let runs be accepted automatically."""
    bench.configure(text)
    path = bench.root / "aiflow.toml"
    path.write_text(f'accept = "auto"\n{before}{path.read_text()}')


@pytest.fixture
def origin(bench: Bench, tmp_path: Path) -> Path:
    """Give the repository an `origin`, and return a colleague's clone of it."""
    configure(bench)
    for number in (2, 3):
        bench.add_request(f"RQ-{number}", depends_on=f"[RQ-{number - 1}]")
    bench.add_request("RQ-4", status="draft", depends_on="[RQ-3]")
    bench.commit()
    git(tmp_path, "clone", "-q", "--bare", str(bench.root), "origin.git")
    bench.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    bench.git("fetch", "-q", "origin")
    bench.git("branch", "-q", "--set-upstream-to=origin/main", "main")
    git(tmp_path, "clone", "-q", "origin.git", "colleague")
    return tmp_path / "colleague"


@pytest.mark.spec("AUT-5", "RUN-7", "REQ-3", "GIT-3")
def test_a_night_goes_on_while_people_switch_branches_edit_pull_and_write_requests(bench: Bench, origin: Path) -> None:
    bench.agent.does("implementer", HELD)
    process = bench.start("auto", "--json")

    wait_for(bench, process, "RQ-1")
    bench.git("checkout", "-q", "-b", "feature")
    (bench.root / "app.txt").write_text("a person's half line")
    (bench.root / "feature.txt").write_text("new\n")
    bench.git("add", "feature.txt")
    bench.git("commit", "-qm", "A person's work", "--", "feature.txt")
    feature = bench.git("rev-parse", "feature")
    let_go(bench, "RQ-1")

    wait_for(bench, process, "RQ-2")
    bench.git("checkout", "-q", "main")
    (origin / "theirs.txt").write_text("theirs\n")
    git(origin, "add", "-A")
    git(origin, "-c", "user.name=C", "-c", "user.email=c@example.com", "commit", "-qm", "A colleague's work")
    git(origin, "push", "-q", "origin", "HEAD:main")
    bench.git("pull", "-q", "--no-rebase", "--no-edit")
    let_go(bench, "RQ-2")

    wait_for(bench, process, "RQ-3")
    path = bench.root / "requests/RQ-4.md"
    path.write_text(path.read_text().replace("status: draft", "status: ready") + "\nWith words of a person's.\n")
    bench.git("checkout", "-q", "feature")
    let_go(bench, "RQ-3", "RQ-4")

    shape = end(process)
    assert (shape["reason_code"], shape["base_branch"], shape["done"]) == ("AUTO_NOTHING_RUNNABLE", "main", 4)
    assert [each["outcome"] for each in shape["results"]] == ["accepted"] * 4
    assert [bench.status(f"RQ-{number}") for number in (1, 2, 3, 4)] == ["done"] * 4
    names = bench.git("ls-tree", "--name-only", "main").splitlines()
    assert {"RQ-1.txt", "RQ-2.txt", "RQ-3.txt", "RQ-4.txt", "theirs.txt"} <= set(names)
    assert "feature.txt" not in names
    # What the person did is where they left it.
    assert (bench.git("branch", "--show-current"), bench.git("rev-parse", "feature")) == ("feature", feature)
    assert (bench.root / "app.txt").read_text() == "a person's half line"
    assert path.read_text().endswith("\nWith words of a person's.\n")
    assert "With words of a person's." in bench.agent.last("implementer")["request"]["body"]
    assert bench.git("stash", "list") == ""
    changed = {line.split()[-1] for line in bench.git("status", "--porcelain", "-uno").splitlines()}
    assert changed == {"app.txt", *(f"requests/RQ-{number}.md" for number in (1, 2, 3, 4))}


@pytest.mark.spec("AUT-2")
def test_a_stash_that_makes_requests_ready_again_has_nothing_run_or_merged_twice(bench: Bench) -> None:
    configure(bench)
    for number in (2, 3, 4):
        bench.add_request(f"RQ-{number}")
    bench.commit()
    bench.agent.does("implementer", HELD)
    process = bench.start("auto", "--json")
    let_go(bench, "RQ-1", "RQ-2", "RQ-4")
    wait_for(bench, process, "RQ-3")
    bench.git("stash")
    assert [bench.status(f"RQ-{number}") for number in (1, 2, 3)] == ["ready"] * 3
    let_go(bench, "RQ-3")

    shape = end(process)
    assert [each["request_id"] for each in shape["results"]] == ["RQ-1", "RQ-2", "RQ-3", "RQ-4"]
    assert [bench.status(f"RQ-{number}") for number in (1, 2, 3, 4)] == [*["ready"] * 3, "done"]
    assert [each["request_id"] for each in shape["unreached"]] == ["RQ-1", "RQ-2", "RQ-3"]
    assert all(each["text"].startswith("already ran in this auto-run") for each in shape["unreached"])
    # RQ-3 was taken back from `running` meanwhile: its work waits to be accepted by a person.
    assert [each["outcome"] for each in shape["results"]] == [*["accepted"] * 2, "awaiting_acceptance", "accepted"]
    merges = bench.git("log", "--merges", "--format=%s", "main").splitlines()
    assert merges == [f"Merge RQ-{number}: RQ-{number}" for number in (4, 2, 1)]


@pytest.mark.spec("AUT-5", "AUT-1")
def test_the_base_is_named_at_the_start_at_each_run_and_at_each_acceptance(bench: Bench) -> None:
    configure(bench)
    bench.commit()
    bench.agent.does("implementer", "write(call['request']['id'] + '.txt', 'x'); done()")
    told = bench.aiflow("auto").stdout
    began, started, ended = (
        next(line for line in told.splitlines() if mark in line) for mark in ("started.", "▶", "✓")
    )
    assert "Base branch: main" in began
    assert "(base: main)" in started
    assert "accepted into main" in ended
    bench.add_request("RQ-2")
    said = bench.aiflow("run", "RQ-2").stdout
    assert f"{bench.run_ids('RQ-2')[0]}  Base branch: main" in said
    assert "merged into main" in said
    bases = [line["data"]["base_branch"] for line in bench.journal() if line["data"].get("event") == "started"]
    assert bases == ["main"]


@pytest.mark.spec("RUN-7", "AUT-1")
def test_a_night_does_not_begin_in_an_edited_checkout_and_a_person_s_run_is_always_strict(bench: Bench) -> None:
    (bench.root / "app.txt").write_text("half a line")
    shape = bench.aiflow.json("auto", code=3)
    assert (shape["reason_code"], shape["checks"][0]["reason_code"]) == ("DOCTOR_FAILED", "WORKTREE_DIRTY")
    bench.git("checkout", "-q", "--", "app.txt")
    bench.add_request("RQ-2")
    bench.agent.does("implementer", HELD)
    process = bench.start("auto", "--json")
    wait_for(bench, process, "RQ-1")
    (bench.root / "app.txt").write_text("half a line")
    let_go(bench, "RQ-1", "RQ-2")
    assert end(process)["done"] == 2
    bench.add_request("RQ-3")
    assert bench.aiflow.json("run", "RQ-3", code=6)["error"]["reason_code"] == "WORKTREE_DIRTY"


@pytest.mark.spec("AUT-5", "SEL-5", "AUT-4")
def test_a_done_dependency_that_is_not_in_the_base_is_warned_of(bench: Bench) -> None:
    configure(bench)
    bench.add_request("RQ-2", depends_on="[RQ-1]")
    bench.commit()
    bench.git("checkout", "-q", "-b", "feature")
    bench.run("RQ-1")
    bench.git("checkout", "-q", "main")
    commit = bench.stage("RQ-1")["accepted_as"]
    words = f"RQ-1 is done, but its merge ({commit[:12]} in feature) is not in main: a run starts without it"
    assert f"DEPENDS_NOT_IN_BASE  {words}" in bench.aiflow("why", "RQ-2").stdout
    assert f"DEPENDS_NOT_IN_BASE  {words}" in bench.aiflow("next").stdout
    assert "RQ-1 は完了していますが" in bench.aiflow("--lang", "ja", "why", "RQ-2").stdout
    warning = {"reason_code": "DEPENDS_NOT_IN_BASE", "detail": words}
    assert bench.aiflow.json("why", "RQ-2")["warnings"] == [warning]
    assert bench.aiflow.json("-c", "base_branch=feature", "why", "RQ-2")["warnings"] == []
    told = bench.aiflow("auto").stdout
    assert "DEPENDS_NOT_IN_BASE: RQ-1 is done, but its merge is not in the base branch" in told
    assert "DEPENDS_NOT_IN_BASE" in bench.stage("RQ-2")["warnings"]
    assert "DEPENDS_NOT_IN_BASE" in (bench.folder("RQ-2") / "report.md").read_text()
    assert bench.status("RQ-2") == "done"
    assert bench.aiflow.json("why", "RQ-2")["warnings"] == []  # it is over
