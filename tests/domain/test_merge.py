"""What a conflict in a file looks like (GIT-3)."""

from __future__ import annotations

import pytest

from aiflow.domain.merge import has_markers, merge_ref


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
