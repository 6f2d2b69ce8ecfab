"""What agents proposed, on the pages (REQ-10, WEB-1): a calm line, a shelf of its own, and links both ways."""

from __future__ import annotations

import pytest

from builders import write_request
from e2e.bench import Bench
from web_yard import WebBench

pytestmark = pytest.mark.spec("REQ-10", "WEB-1")


def _found(bench: Bench) -> None:
    write_request(bench.root, "RQ-8", "status: draft\nfound_in: RQ-1\n\n# <b>Close</b> the file\n")


@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_draft_that_an_agent_proposed_is_on_the_morning_and_a_shelf_of_its_own(
    web: WebBench, bench: Bench, language: str
) -> None:
    assert 'href="/backlog?s=found"' not in web.page("/", language=language)
    assert 'id="shelf-found"' not in web.page("/backlog", language=language)
    _found(bench)
    assert 'href="/backlog?s=found"' in web.page("/", language=language)
    text = web.page("/backlog?s=found", language=language)
    assert 'id="row-RQ-8"' in text
    assert 'id="row-RQ-1"' not in text
    assert "<b>Close" not in text
    bench.add_request("RQ-9")
    write_request(bench.root, "RQ-8", "status: ready\nfound_in: RQ-1\n\n# Close the file\n")
    assert 'href="/backlog?s=found"' not in web.page("/", language=language)


def test_the_request_leads_to_what_was_found_in_it_and_back(web: WebBench, bench: Bench) -> None:
    _found(bench)
    text = web.page("/requests/RQ-8")
    assert 'href="/requests/RQ-1">RQ-1</a>' in text
    assert "It has no text besides its title." in text
    assert 'href="/requests/RQ-8">RQ-8</a>' in web.page("/requests/RQ-1")
