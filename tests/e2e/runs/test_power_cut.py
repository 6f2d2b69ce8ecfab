"""aiflow and its git killed together while an acceptance writes into a person's checkout (GIT-3, REQ-6)."""

from __future__ import annotations

import pytest

from e2e.bench import Bench, tree_of

COUNT = 40
# Who calls the filter or the hook is git, and who called that is aiflow.
AIFLOW = "$(ps -o ppid= -p $PPID)"


def finish(bench: Bench) -> None:
    """Have a run that waits with a change of many files, and a person with unfinished business in their checkout."""
    for number in range(COUNT):
        (bench.root / f"f{number:02}.txt").write_text("old\n")
    (bench.root / "own.txt").write_text("committed\n")
    bench.configure("[limits]\nstep_files = 1000\nstep_lines = 10000\n[git]\nhooks = true")
    bench.commit()
    write = f"[write(f'f{{n:02}}.txt', 'new\\n') for n in range({COUNT})]; write('added/new.txt', 'new\\n'); done()"
    bench.agent.does("implementer", write)
    bench.run()
    (bench.root / "own.txt").write_text("mine\n")
    (bench.root / "untracked.txt").write_text("mine, too\n")
    assert bench.git("status", "--porcelain", "--", ":!requests") == OWN


OWN = "M own.txt\n?? untracked.txt"


def cut_off_at(bench: Bench, path: str) -> None:
    """Accept, and have everything killed when git writes a file."""
    (bench.root / ".git/info/attributes").write_text(f"{path} filter=cut\n")
    bench.git("config", "filter.cut.clean", "cat")
    bench.git("config", "filter.cut.smudge", f"kill -9 {AIFLOW} $PPID; cat")
    # The merge has no tests here: nothing else is laid out.
    process = bench.start("accept", "RQ-1", "--json")
    assert process.wait() == -9
    (bench.root / ".git/info/attributes").unlink()
    assert len(bench.git("status", "--porcelain", "--", ":!requests").splitlines()) > 2


def cut_off_behind_the_move(bench: Bench) -> None:
    """Accept, and have aiflow killed when the base branch has moved; git comes to its end."""
    hook = bench.root / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\n[ "$1" = committed ] && grep -q refs/heads/main && kill -9 {AIFLOW}\nexit 0\n')
    hook.chmod(0o755)
    process = bench.start("accept", "RQ-1", "--json")
    assert process.wait() == -9
    hook.unlink()


def is_tidy(bench: Bench) -> bool:
    left = [*bench.root.glob(".git/**/*.lock"), *bench.root.glob(".git/aiflow-*")]
    is_own = (bench.root / "own.txt").read_text() == "mine\n"
    return not left and is_own and bench.git("status", "--porcelain", "--", ":!requests") == OWN


@pytest.mark.spec("GIT-3", "REQ-6")
@pytest.mark.parametrize("path", ["f01.txt", "f20.txt", f"f{COUNT - 1}.txt"])
def test_accepting_again_brings_the_work_in_and_loses_nothing(bench: Bench, path: str) -> None:
    finish(bench)
    cut_off_at(bench, path)
    assert "is as it was before; accept or undo the run again" in bench.aiflow("accept", "RQ-1").stderr
    assert bench.stage()["accepted_as"] == bench.git("rev-parse", "main")
    assert bench.status() == "done"
    assert is_tidy(bench)
    entry = next(each for each in bench.journal() if each.get("reason_code") == "CHECKOUT_RECOVERED")
    assert (entry["kind"], entry["request_id"], entry["data"]["outcome"]) == ("recovery", "RQ-1", "back")


@pytest.mark.spec("GIT-3", "DOC-1", "DOC-2")
def test_the_doctor_names_it_and_in_full_puts_it_right(bench: Bench) -> None:
    finish(bench)
    cut_off_at(bench, "f20.txt")
    before = tree_of(bench.root)
    quick = {check["id"]: check for check in bench.aiflow.json("doctor", code=6)["checks"]}
    assert (quick["merge"]["result"], quick["merge"]["fix"]) == ("WARN", "aiflow doctor --full")
    assert quick["merge"]["evidence"] == [str(bench.root)]
    assert tree_of(bench.root) == before
    (bench.root / "own.txt").write_text("committed\n")
    full = {check["id"]: check for check in bench.aiflow.json("doctor", "--full")["checks"]}
    assert (full["merge"]["result"], full["merge"]["reason_code"]) == ("WARN", "CHECKOUT_RECOVERED")
    assert full["checkout"]["result"] == "PASS"
    (bench.root / "own.txt").write_text("mine\n")
    assert is_tidy(bench)
    assert "merge" not in {check["id"] for check in bench.aiflow.json("doctor", "--full", code=6)["checks"]}


@pytest.mark.spec("GIT-3", "RUN-7")
def test_a_start_of_something_else_puts_it_right_first(bench: Bench) -> None:
    finish(bench)
    cut_off_at(bench, "f20.txt")
    (bench.root / "own.txt").write_text("committed\n")
    bench.add_request("RQ-2")
    bench.agent.does("implementer", "write('second.txt', '2\\n'); done()")
    assert bench.run("RQ-2")["state"] == "DONE"
    (bench.root / "own.txt").write_text("mine\n")
    assert is_tidy(bench)


@pytest.mark.spec("REQ-6", "GIT-3")
@pytest.mark.parametrize("command", [["send-back", "RQ-1", "-m", "No."], ["resume", "RQ-1", "--update"]])
def test_work_that_is_in_the_base_is_not_taken_for_work_that_is_not(bench: Bench, command: list[str]) -> None:
    finish(bench)
    cut_off_behind_the_move(bench)
    merge = bench.git("rev-parse", "main")
    (bench.root / "own.txt").write_text("committed\n")
    (bench.root / "later.txt").write_text("somebody else\n")
    bench.git("add", "later.txt")
    bench.git("commit", "-qm", "later")
    refused = bench.aiflow.json(*command, code=4)
    assert refused["error"]["reason_code"] == "RUN_NOT_ACCEPTABLE"
    assert (bench.stage()["accepted_as"], bench.status()) == (merge, "done")
    assert "No." not in (bench.root / "requests/RQ-1.md").read_text()
    assert [each["event"] for each in bench.stage()["history"]].count("ACCEPTED") == 1


@pytest.mark.spec("REQ-6", "GIT-3")
def test_accepting_again_names_the_merge_that_was_made(bench: Bench) -> None:
    finish(bench)
    cut_off_behind_the_move(bench)
    merge = bench.git("rev-parse", "main")
    (bench.root / "own.txt").write_text("committed\n")
    bench.git("commit", "-q", "--allow-empty", "-m", "later")
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"] == merge
    assert bench.status() == "done"
