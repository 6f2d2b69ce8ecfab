"""What counts as a request's acceptance criteria, whoever wrote it and however."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.agents.criteria import MOST_CHARACTERS, MOST_CRITERIA, criteria_in

pytestmark = pytest.mark.spec("RUN-18")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("# Do it\n\nJust so.\n", ()),
        ("# Do it\n\n- no criterion\n", ()),
        ("# Do\n\n## Acceptance criteria\n\n- one\n- two\n\n## Notes\n\n- not this\n", ("one", "two")),
        (
            "# 挨拶\n\n## 受け入れ条件\n\n- 日本語で挨拶する\n・英語も残す\n1. README に書く\n",
            ("日本語で挨拶する", "英語も残す", "README に書く"),
        ),
        ("## 受入基準\n\n* 一つ\n", ("一つ",)),
        ("## 完了条件\n* 一つ\n", ("一つ",)),
        ("### Done when\n1. it runs\n2) it is fast\n", ("it runs", "it is fast")),
        ("**Acceptance:**\n- bold\n\nAfter that:\n- not this\n", ("bold",)),
        ("Acceptance criteria:\n\n- labelled\n\n# Next\n- not this\n", ("labelled",)),
        ("Text\n\n- [ ] a box\n- [x] a ticked one\n- none\n", ("a box", "a ticked one")),
        ("## Acceptance\n### On the page\n- a\n### In the terminal\n- b\n## Else\n- c\n", ("a", "b")),
        ("## Acceptance\n- over\n  two lines\n- and\n  - a smaller one\n", ("over two lines", "and", "a smaller one")),
        ("## Acceptance\n```\n- code\n## Acceptance\n```\n- real\n", ("real",)),
        ("```\n## Acceptance\n- code\n- [ ] code\n```\n", ()),
        ("## Acceptance\n\nIt works.\n", ()),
        ("## Acceptance\n- twice\n- twice\n-\n", ("twice",)),
        ("## Acceptance\r\n- of Windows\r\n", ("of Windows",)),
        ("", ()),
    ],
)
def test_criteria_are_the_items_below_their_heading_and_check_boxes(body: str, found: tuple[str, ...]) -> None:
    assert criteria_in(body) == found


def test_there_are_never_too_many_nor_too_long_ones() -> None:
    body = "## Acceptance\n" + "".join(f"- {number} {'x' * 900}\n" for number in range(200))
    assert len(criteria_in(body)) == MOST_CRITERIA
    assert {len(each) for each in criteria_in(body)} == {MOST_CHARACTERS}


def test_an_item_over_many_lines_is_cut_where_any_other_is() -> None:
    lines = [f"  line  {number} " for number in range(100)]
    whole = " ".join(["-", *(" ".join(line.split()) for line in lines)])
    assert criteria_in("## Acceptance\n- " + "\n".join(lines)) == criteria_in(f"## Acceptance\n{whole}")


@pytest.mark.timing
def test_an_item_over_very_many_lines_takes_a_moment(allowed: Callable[[float], float]) -> None:
    body = "## Acceptance\n- a\n" + "  x\n" * 300_000
    begun = perf_counter()
    criteria_in(body)
    assert perf_counter() - begun < allowed(2)


@given(
    st.lists(st.sampled_from(["## Acceptance", "- a", "  b", "```", "- [ ] c", "", "**x**", "y:", "#", "1. d"])).map(
        "\n".join
    )
    | st.text()
)
def test_any_text_has_its_criteria(body: str) -> None:
    assert all(each == each.strip() != "" for each in criteria_in(body))
