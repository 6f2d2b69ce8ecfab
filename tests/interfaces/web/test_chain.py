"""The chain of what a request waits for, as a page draws it (SEL-5): each request once, however deep it goes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from markupsafe import Markup

from aiflow.domain.backlog.board import Board
from aiflow.domain.backlog.explanation import explain
from aiflow.domain.request import RequestId
from aiflow.messages import Texts
from aiflow.web.chain import DEEPEST, MOST_LINKS, Link, chain_of
from aiflow.web.told import linked
from builders import backlog, request

pytestmark = pytest.mark.spec("SEL-5", "WEB-1")
EN = Texts("en")


def walk(links: tuple[Link, ...], depth: int = 1) -> Iterator[tuple[str, int]]:
    for link in links:
        yield link.request_id, depth
        yield from walk(link.waits_for, depth + 1)


def test_a_deep_chain_shows_each_request_once_and_not_too_far_aside() -> None:
    names = [f"RQ-{number:02}" for number in range(DEEPEST + 6)]
    requests = [request(name, depends_on=[after]) for name, after in pairwise(names)]
    side = request("SIDE", "draft")
    first = request("TOP", depends_on=[names[0], "SIDE"])
    board = Board(backlog(first, *requests, request(names[-1], "draft"), side), {})
    chain = chain_of(explain(RequestId("TOP"), board.backlog), board, EN)
    found = list(walk(chain.links))
    assert [name for name, _ in found] == [*names, "SIDE"]
    assert max(depth for _, depth in found) == DEEPEST + 1
    assert dict(found)["SIDE"] == 1
    assert chain.left_out == 0


def test_a_long_chain_is_cut_and_counted() -> None:
    names = [f"RQ-{number:03}" for number in range(MOST_LINKS + 5)]
    board = Board(backlog(request("TOP", depends_on=names), *(request(name, "draft") for name in names)), {})
    chain = chain_of(explain(RequestId("TOP"), board.backlog), board, EN)
    assert (len(chain.links), chain.left_out) == (MOST_LINKS, 5)


def test_a_link_in_a_sentence_is_the_only_markup_in_it() -> None:
    link = Markup("<a>{}</a>").format("<i>")
    told = linked(EN, "web.why.depends.ready", link)
    assert told == "waits for <a>&lt;i&gt;</a>, which is ready"
    assert "<b>" not in linked(EN, "web.receipt.set", link, id="<b>", values="\ue000<b>")


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", ("waits for RQ-2", "depends on RQ-9, which cannot be found")),
        ("ja", ("RQ-2 を待っています", "依存先 RQ-9 が存在しません")),
    ],
)
def test_whom_it_waits_for_is_said_in_words_and_not_with_the_key_of_the_file(
    language: str, said: tuple[str, str]
) -> None:
    board = Board(backlog(request("RQ-1", depends_on=["RQ-2", "RQ-9"]), request("RQ-2", "draft")), {})
    chain = chain_of(explain(RequestId("RQ-1"), board.backlog), board, Texts(language))
    assert set(said) <= set(chain.sentences)
    assert "depends_on" not in " ".join(chain.sentences)
