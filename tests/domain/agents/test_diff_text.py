"""A diff that is too large keeps the beginning of each file, and says what it lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.agents.diff_text import LEAST, MOST_NAMED, capped_diff

pytestmark = pytest.mark.spec("RUN-18")


def of_file(name: str, lines: int) -> str:
    """A file's part of a diff."""
    return f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -0,0 +1,{lines} @@\n" + "+a line\n" * lines


def test_a_small_diff_stays_as_it_is() -> None:
    diff = of_file("a.py", 3) + of_file("b.py", 3)
    assert capped_diff(diff, len(diff)) == diff


def test_of_a_large_one_small_files_stay_whole_and_large_ones_lose_their_ends() -> None:
    small, large, larger = of_file("small.py", 5), of_file("large.py", 2_000), of_file("larger.py", 9_000)
    told = capped_diff(large + small + larger, 10_000)
    assert small in told
    assert len(told) < 10_500
    shown, cut = told.split("\n[aiflow] cut here; read these files:\n")
    assert [line.split(" (")[0] for line in cut.splitlines()] == ["  large.py", "  larger.py"]
    assert f"of {len(large):,} characters" in cut
    for name in ("large.py", "larger.py"):
        assert shown.count(f"+++ b/{name}") == 1
    assert shown.index("large.py") < shown.index("small.py") < shown.index("larger.py")


def test_files_for_which_there_is_no_room_are_named() -> None:
    told = capped_diff("".join(of_file(f"f{number}.py", 500) for number in range(300)), 20 * LEAST + 300)
    assert told.count("diff --git") == 20
    assert told.endswith(f"\n  and {300 - MOST_NAMED} more files")
    assert len(told) < 21 * LEAST + MOST_NAMED * 60


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 600)), min_size=1, max_size=20),
    st.integers(2_000, 9_000),
)
def test_what_is_shown_is_never_much_more_than_asked_for_and_every_file_is_there_or_named(
    files: list[tuple[str, int]], most: int
) -> None:
    told = capped_diff(
        "".join(of_file(f"{number}{name}.py", lines) for number, (name, lines) in enumerate(files)), most
    )
    assert len(told.partition("\n[aiflow]")[0]) <= most
    for number, (name, _) in enumerate(files):
        assert f"{number}{name}.py" in told
