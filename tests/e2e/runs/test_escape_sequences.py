"""No file that a run leaves for people holds what a terminal obeys, nor a password that was printed (SEC, AGT-4)."""

from __future__ import annotations

import pytest

from e2e.bench import Bench

RED = "\\x1b[31mred\\x1b[0m\\x1b]0;title\\x07"


@pytest.mark.spec("SEC", "AGT-4", "RUN-1")
def test_logs_reports_records_and_commits_hold_no_escape_sequence(bench: Bench) -> None:
    bench.configure("[tests]\nunit = \"printf '\\\\033[32mgreen\\\\033[0m password=hunter2\\\\n'\"")
    bench.agent.does("implementer", f"print('{RED}'); write('new.txt', 'new\\n'); done('did {RED}')")
    done = bench.run()
    folder = bench.folder()
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        assert b"\x1b" not in path.read_bytes(), path
        assert b"\\u001b" not in path.read_bytes(), path
        assert b"hunter2" not in path.read_bytes(), path
    assert "green password=***" in bench.log(1)
    assert "did red" in bench.git("log", "-1", "--format=%B", done["branch"])
    assert "\x1b" not in bench.git("log", "--format=%B", done["branch"])
    accepted = bench.aiflow.json("accept", "RQ-1")
    assert "\x1b" not in bench.git("log", "--format=%B", accepted["accepted_as"])


@pytest.mark.spec("SEC", "AGT-4")
def test_a_failure_is_told_without_them(bench: Bench) -> None:
    bench.agent.does("implementer", f"print('{RED}', file=sys.stderr); sys.exit('{RED} failed')")
    bench.run(code=5)
    for path in [path for path in bench.folder().rglob("*") if path.is_file()]:
        assert b"\x1b" not in path.read_bytes(), path
        assert b"\\u001b" not in path.read_bytes(), path
