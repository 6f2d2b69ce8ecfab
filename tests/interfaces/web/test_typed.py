"""Without a script (WEB-1) a refusal shows the form again, with what was typed, and it can be corrected and sent again."""

from __future__ import annotations

import html
import re

import pytest

from builders import write_request
from e2e.bench import Bench
from web_yard import WebBench

pytestmark = pytest.mark.spec("WEB-1")
TEXT = "First line.\n\n</textarea> <b>second</b>"
RUN = "/requests/RQ-1/runs/RUN-20260102-030405-aaaaaa"
# Where a form is sent, what is in it, and the names of what a person can read and change when it comes back.
REFUSED = [
    ("/requests", {"title": "T <i>", "text": TEXT, "priority": "P1", "labels": "a, b", "request_id": "RQ-1", "do": "run"}, 5),
    ("/requests/GONE/edit", {"text": TEXT, "begun_with": "\nNothing"}, 1),
    ("/requests/GONE/set", {"status": "done", "priority": "P3", "labels": "mine", "was_depends_on": ""}, 3),
    (f"{RUN}/resume", {"ask": "1", "choice": "late", "answer": TEXT}, 1),
    ("/requests/RQ-1/send-back", {"comment": TEXT, "line_path": "a.py", "line_number": "3", "line_text": "Why?\nSo?"}, 1),
    ("/auto/start", {"max_runs": "three", "until": "23:00", "watch": "1"}, 2),
]  # fmt: skip


def fields_of(page: str) -> tuple[dict[str, str], set[str]]:
    """Return what a browser would send of the form in the page's main part, and the names of what it shows."""
    [form] = re.findall(r'<form class="edit-form.*?</form>', page, re.DOTALL)
    found = dict(re.findall(r'<input class="field" name="(\w+)" value="([^"]*)"', form))
    shown = re.findall(r'<textarea class="field" name="(\w+)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL)
    shown += re.findall(r'<select class="field" name="(\w+)">.*?<option selected>(\w+)</option>', form)
    unseen = re.findall(r'<textarea name="(\w+)" hidden>\n(.*?)</textarea>', form, re.DOTALL)
    found |= dict(shown)
    return {name: html.unescape(value) for name, value in {**found, **dict(unseen)}.items()}, set(found)


@pytest.mark.parametrize(("path", "fields", "shown"), REFUSED, ids=[path for path, _, _ in REFUSED])
def test_what_was_typed_comes_back_with_the_refusal(
    web: WebBench, path: str, fields: dict[str, str | list[str]], shown: int
) -> None:
    status, page = web.submit(path, fields, has_script=False)
    assert status >= 400
    assert f'action="{path}"' in page
    again, seen = fields_of(page)
    assert again == fields
    assert len(seen) == shown
    assert web.submit(path, again, has_script=False)[0] == status  # and once more: nothing is lost on the way


def test_it_can_be_corrected_and_sent_again(web: WebBench, bench: Bench) -> None:
    given = {"title": "Mine", "text": TEXT, "request_id": "RQ-1", "do": "ready"}
    status, page = web.submit("/requests", given, has_script=False)
    assert status == 409
    again, _ = fields_of(page)
    assert web.submit("/requests", {**again, "request_id": "RQ-2"}, has_script=False) == (303, "/requests/RQ-2")
    assert TEXT in (bench.root / "requests/RQ-2.md").read_text()


def test_where_nothing_was_typed_there_is_only_the_way_back(web: WebBench, bench: Bench) -> None:
    write_request(bench.root, "RQ-2", "status: draft\n\n# Two\n")
    for path, fields in (
        ("/requests/GONE/run", {}),
        (f"{RUN}/resume", {"ask": "1"}),
        ("/requests/GONE/set", {"status": "ready"}),
    ):
        status, page = web.submit(path, fields, has_script=False)
        assert status >= 400
        assert '<form class="edit-form' not in page
        assert ">Back</a>" in page


def test_another_language_leaves_a_page_alone_on_which_something_is_typed(web: WebBench) -> None:
    for path, stays in (("/new", True), ("/requests/RQ-1/edit", True), ("/", True), ("/activity", False)):
        buttons = re.findall(r'<button[^>]* name="(?:lang|theme)"[^>]*>', web.page(path))
        assert len(buttons) == 4
        assert all(('formtarget="_blank"' in each) == stays for each in buttons), path
