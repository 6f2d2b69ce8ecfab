"""What a conflict in a file looks like (GIT-3), and where a merge is tested."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aiflow.domain.runs.merge import has_markers, is_for_set_up, merge_ref
from aiflow.domain.runs.step_work import StepWork
from run_builders import done


@pytest.mark.spec("GIT-3")
@pytest.mark.parametrize(
    ("text", "is_marked"),
    [
        (b"", False),
        (b"<<<<<<< main\na\n=======\nb\n>>>>>>> run\n", True),
        (b"x\r\n<<<<<<< main\r\na\r\n||||||| base\r\n=======\r\nb\r\n>>>>>>> run\r\n", True),
        (b"<<<<<<<<<<<<<<<< main\n>>>>>>>>>>>>>>>> run", True),
        (b"<<<<<<< main\n", False),
        (b">>>>>>> run\n", False),
        (b" <<<<<<< main\n >>>>>>> run\n", False),
        (b"<<<<<<\n>>>>>>\n", False),
        (b"Title\n=======\n", False),
        (b"a <<<<<<< b\nc >>>>>>> d\n", False),
    ],
)
def test_markers_have_two_ends_at_the_beginning_of_a_line(text: bytes, is_marked: bool) -> None:
    assert has_markers(text) is is_marked


@pytest.mark.spec("GIT-3")
def test_each_step_keeps_its_merge_under_a_ref_of_its_own() -> None:
    assert merge_ref("RUN-1", "S02") == "refs/aiflow/merges/RUN-1/S02"


@pytest.mark.spec("GIT-4")
def test_what_a_set_up_command_goes_by() -> None:
    for path in ("uv.lock", "web/package-lock.json", "go.sum", "requirements.txt", "dev-requirements.in"):
        assert is_for_set_up(path), path
    for path in ("requirements/base.txt", "api/requirements-dev.txt", "pyproject.toml"):
        assert is_for_set_up(path), path
    for path in ("src/lock.py", "requirements.md", "docs/uv.lock.md", "requests/RQ-1.md"):
        assert not is_for_set_up(path), path


@pytest.mark.spec("GIT-4")
def test_a_run_is_set_up_where_it_began_or_where_its_base_was_merged_in() -> None:
    run = done()
    assert run.set_up_at == run.place.base_commit
    merging = StepWork(base="merge", merges="base")
    assert replace(run, steps={**run.steps, "S09": merging}).set_up_at == "merge"
