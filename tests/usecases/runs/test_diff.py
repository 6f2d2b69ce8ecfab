"""What a run changed: against its base or in one step, from commits, with what an unfinished step left marked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aiflow.domain.runs.run import Run
from aiflow.domain.runs.step_work import StepWork
from aiflow.domain.runs.worktree import FileDiff, Place
from aiflow.errors import BadInputError
from aiflow.usecases.engine import Engine
from aiflow.usecases.runs import diff as module
from aiflow.usecases.runs.diff import diff_run, ends_of
from aiflow.usecases.shapes.runs import diff_shape
from git_template import be_ada, git
from real_engine import engine_at
from run_builders import PLAN, RUN_ID, in_step

pytestmark = pytest.mark.spec("RUN-7", "GIT-1")


class Scene:
    """A repository with a base, two finished steps, and what the third left unfinished; there is no worktree."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "app.txt").write_text("one\ntwo\n")
        (root / "old name.txt").write_text("".join(f"line {number}\n" for number in range(20)))
        self.base = self.commit("base")
        (root / "app.txt").write_text("one\n2\n")
        self.first = self.commit("S01")
        (root / "old name.txt").rename(root / "新しい.txt")
        (root / "logo.png").write_bytes(b"\x89PNG\0\1\2")
        self.second = self.commit("S02")
        (root / "app.txt").write_text("one\n2\nthree\n")
        (root / "half.txt").write_text("half\n")
        self.kept = self.commit("kept")
        git(root, "reset", "-q", "--hard", self.second)
        self.engine: Engine = engine_at(root)

    def commit(self, message: str) -> str:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", message)
        return git(self.root, "rev-parse", "HEAD")

    def run(self, **third: object) -> Run:
        steps = {
            "S01": StepWork(self.base, self.first, is_done=True),
            "S02": StepWork(self.first, self.second, is_done=True),
            "S03": replace(StepWork(self.second), **third),  # type: ignore[arg-type]
        }
        place = Place(RUN_ID, "/gone", f"aiflow/RQ-1/{RUN_ID}", "main", self.base)
        return replace(in_step(3), place=place, steps=steps)


@pytest.fixture
def scene(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    be_ada(monkeypatch)
    return Scene(repository)


BINARY = FileDiff("logo.png", is_binary=True)
MOVED = FileDiff("新しい.txt", old_path="old name.txt")


def test_a_run_against_its_base(scene: Scene) -> None:
    diff = diff_run(scene.engine, scene.run())
    assert (diff.old, diff.new) == (scene.base, scene.second)
    assert set(diff.files) == {FileDiff("app.txt", 1, 1), BINARY, MOVED}
    assert "-two\n+2\n" in diff.text
    assert "rename to 新しい.txt" in diff.text
    assert "Binary files /dev/null and b/logo.png differ" in diff.text
    assert (diff.unfinished, diff.is_gone, diff.is_cut) == (None, False, False)


def test_the_sizes_alone_are_the_same_and_whatever_a_file_is_called(scene: Scene) -> None:
    odd = "0" * 40 + " " + "1" * 40 + "\n1\t1\tx"
    (scene.root / odd).write_text("odd\n")
    (scene.root / "zz.txt").write_text("zz\n")
    last = scene.commit("odd")
    (first, second) = scene.engine.merging.sizes([ends_of(scene.run()), (scene.second, last)])
    assert first == diff_run(scene.engine, scene.run()).files
    assert second is not None
    assert [(file.path, file.added) for file in second] == [(odd, 1), ("zz.txt", 1)]


def test_one_step_of_it(scene: Scene) -> None:
    run = scene.run()
    for name in ("S01", "s01", "1"):
        diff = diff_run(scene.engine, run, name)
        assert (diff.step_id, diff.old, diff.new) == ("S01", scene.base, scene.first)
        assert diff.files == (FileDiff("app.txt", 1, 1),)
    nothing = diff_run(scene.engine, run, "S03")
    assert (nothing.files, nothing.text, nothing.is_gone) == ((), "", False)
    with pytest.raises(BadInputError) as caught:
        diff_run(scene.engine, run, "S09")
    assert caught.value.context["detail"] == "S09: S01, S02, S03"


def test_what_an_unfinished_step_left_is_included_and_marked(scene: Scene) -> None:
    run = scene.run(kept=scene.kept)
    diff = diff_run(scene.engine, run)
    assert (diff.new, diff.unfinished) == (scene.kept, "S03")
    assert set(diff.files) == {FileDiff("app.txt", 2, 1), FileDiff("half.txt", 1, 0), BINARY, MOVED}
    marked = {file["path"]: file["is_unfinished"] for file in diff_shape(diff)["files"]}
    assert marked == {"app.txt": True, "half.txt": True, "logo.png": False, "新しい.txt": False}
    step = diff_run(scene.engine, run, "S03")
    assert (step.old, step.new, step.unfinished) == (scene.second, scene.kept, "S03")
    assert {file.path for file in step.files} == {"app.txt", "half.txt"}
    assert diff_run(scene.engine, run, "S02").unfinished is None
    finished = replace(run, steps={**run.steps, "S03": StepWork(scene.second, is_done=True, kept=scene.kept)})
    assert diff_run(scene.engine, finished).unfinished is None


def test_a_run_that_took_its_base_branch_in_is_compared_with_that(scene: Scene) -> None:
    git(scene.root, "checkout", "-q", scene.base)
    (scene.root / "others.txt").write_text("others\n")
    moved_on = scene.commit("of others")
    git(scene.root, "merge", "-q", "--no-edit", scene.second)
    merge = git(scene.root, "rev-parse", "HEAD")
    diff = diff_run(scene.engine, scene.run(base=merge, merges=moved_on))
    assert (diff.old, diff.new) == (moved_on, merge)
    assert {file.path for file in diff.files} == {"app.txt", "logo.png", "新しい.txt"}


@pytest.mark.parametrize("commit", ["0" * 40, "--output=/tmp/x", "HEAD", "", "main"])
def test_commits_that_are_gone_or_none_are_said_to_be(scene: Scene, commit: str) -> None:
    run = scene.run()
    lost = replace(run, place=replace(run.place, base_commit=commit))
    diff = diff_run(scene.engine, lost)
    assert (diff.is_gone, diff.files, diff.text) == (True, (), "")
    assert diff_run(scene.engine, replace(run, plan=PLAN), "S02").files
    without = diff_run(scene.engine, scene.run(kept=commit))
    assert (without.new, without.unfinished, without.is_gone) == (scene.second, None, False)


def test_a_long_text_is_cut_behind_a_line(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = diff_run(scene.engine, scene.run()).text
    monkeypatch.setattr(module, "MOST_CHARACTERS", 100)
    diff = diff_run(scene.engine, scene.run())
    assert diff.is_cut
    assert 0 < len(diff.text) <= 100
    assert diff.text.endswith("\n")
    assert whole.startswith(diff.text)
    assert len(diff.files) == 3
