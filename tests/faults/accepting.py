"""What must hold when runs were accepted, whatever was killed on the way: each is in the base branch once."""

from __future__ import annotations

import os

from aiflow.domain.runs.run import Run
from faults.killing import Scene, git

MARKER = "<<<<<<<"


def first_parents(scene: Scene, branch: str = "main") -> list[list[str]]:
    """Return a branch's history as a person reads it, newest first: each commit with its parents."""
    return [line.split() for line in git(scene.root, "rev-list", "--first-parent", "--parents", branch).splitlines()]


def commit_on_base(scene: Scene, files: dict[str, str]) -> str:
    """Let somebody else commit to the base branch while nobody has it checked out."""
    index = scene.world / "tmp/index"
    environ = {**os.environ, "GIT_INDEX_FILE": str(index)}
    git(scene.root, "read-tree", "main", environ=environ)
    for path, text in files.items():
        (scene.world / "tmp/text").write_text(text)
        blob = git(scene.root, "hash-object", "-w", str(scene.world / "tmp/text")).strip()
        git(scene.root, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", environ=environ)
    tree = git(scene.root, "write-tree", environ=environ).strip()
    commit = git(scene.root, "commit-tree", tree, "-p", "main", "-m", "Somebody else").strip()
    git(scene.root, "update-ref", "refs/heads/main", commit)
    index.unlink()
    return commit


def accepted_runs(scene: Scene) -> list[Run]:
    """Return the runs that are recorded as accepted."""
    runs = [scene.run(run_id, request) for request in scene.requests() for run_id in scene.run_ids(request)]
    return [run for run in runs if run.accepted_as]


def check_base(scene: Scene) -> None:
    """Check that the base branch has one merge of every accepted run, of nothing else, and no conflict marker."""
    merges = {commit: parents[1:] for commit, *parents in first_parents(scene) if len(parents) > 1}
    runs = accepted_runs(scene)
    tips = {run.accepted_as: [git(scene.root, "rev-parse", run.place.branch).strip()] for run in runs}
    assert merges == tips
    assert len(merges) == len(runs)
    for run in runs:
        text = git(scene.root, "log", "-1", "--format=%B", run.accepted_as or "")
        assert text.splitlines()[0] == f"Merge {run.request_id}: {run.title}"
        assert f"Aiflow-Run: {run.run_id}" in text
    assert git(scene.root, "log", "--format=%H", f"-S{MARKER}", "main") == ""


def check_accepted(scene: Scene, request_id: str = "RQ-1") -> Run:
    """Check that a request's run is accepted, its files say so once, and nothing of the way there is left."""
    run = scene.run(request_id=request_id)
    assert (run.state.value, scene.status(request_id), run.error) == ("DONE", "done", None)
    assert [line.event for line in run.history].count("ACCEPTED") == 1
    scene.check_files(run)
    report = (scene.stage_path(run.run_id, request_id).parent / "report.md").read_text()
    assert report.count(f"merged into main as {(run.accepted_as or '')[:12]}") == 1, report
    check_base(scene)
    check_tidy(scene)
    return run


def check_tidy(scene: Scene) -> None:
    """Check that nothing is left of a kill, and that the person's checkout is as a fast-forward leaves it."""
    control = scene.root / ".aiflow/control"
    assert not control.exists() or os.listdir(control) == []
    assert list((scene.world / "state").rglob("*.merge")) == []
    assert ".merge" not in git(scene.root, "worktree", "list")
    scene.check_tidy(after_fast_forward(scene))


def after_fast_forward(scene: Scene) -> dict[str, object]:
    """Return how the person's checkout must look if the base branch has moved to where it is now."""
    looks = dict(scene.checkout)
    refs = scene.checkout["refs"]
    assert isinstance(refs, list)
    now = git(scene.root, "rev-parse", "main").strip()
    looks["refs"] = [f"refs/heads/main {now}" if line.startswith("refs/heads/main ") else line for line in refs]
    if scene.is_on_base:
        for line in git(scene.root, "diff", "--name-only", scene.first_commit, "main").splitlines():
            looks[line] = git(scene.root, "show", f"main:{line}").encode()
            looks["tracked"] = {**looks["tracked"], line: git(scene.root, "ls-tree", "main", line).split()[2]}  # type: ignore[dict-item]
    return looks
