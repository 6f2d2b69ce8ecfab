"""Changing several keys at once (REQ-3): what somebody saw is compared key by key, and nothing else is in the way."""

from __future__ import annotations

import pytest

from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.domain.request import RequestId
from aiflow.errors import ConflictError
from aiflow.usecases.backlog.patch import Patch, patch_request
from builders import NOW

pytestmark = pytest.mark.spec("REQ-3")
A = RequestId("A")


def patched(text: str, patch: Patch, files: MemoryRequests | None = None) -> str:
    files = files or MemoryRequests({A: text})
    patch_request(A, patch, FileSource(files), files, (MemoryJournal(), lambda: NOW))
    return files.texts[A]


def test_a_key_that_still_says_what_was_seen_is_changed() -> None:
    text = patched("---\nstatus: ready\npriority: P1\n---\n", Patch({"priority": "P0"}, expected={"priority": "P1"}))
    assert "priority: P0" in text


def test_a_key_that_is_missing_says_its_default() -> None:
    patch = Patch({"priority": "P0", "labels": ("x",)}, expected={"priority": "P3", "labels": ()})
    assert "priority: P0" in patched("---\nstatus: ready\n---\n", patch)


def test_a_key_that_says_something_else_by_now_is_a_conflict_and_nothing_is_written() -> None:
    files = MemoryRequests({A: "---\nstatus: ready\npriority: P2\nlabels: [a, b]\n---\n"})
    before = files.texts[A]
    for key, new, seen, found in (("priority", "P0", "P1", "P2"), ("labels", ("c",), ("a",), "a, b")):
        with pytest.raises(ConflictError) as refused:
            patched("", Patch({"status": "draft", key: new}, expected={"status": "ready", key: seen}), files)
        assert (refused.value.context["key"], refused.value.context["found"]) == (key, found)
        assert files.texts[A] == before


def test_what_others_changed_besides_and_what_is_so_already_is_no_conflict() -> None:
    text = "---\nstatus: blocked\npriority: P0\n---\n"
    patch = Patch({"priority": "P0", "labels": ("x",)}, expected={"priority": "P1", "labels": ()})
    after = patched(text, patch)
    assert "status: blocked" in after
    assert "x" in after


class Busy(MemoryRequests):
    """Somebody writes into a file right after it was read, a few times."""

    left, old, new = 2, "", ""

    def whole_text(self, request_id: RequestId) -> str:
        text = super().whole_text(request_id)
        if self.left:
            self.left -= 1
            self.texts[request_id] = text.replace(self.old, self.new)
        return text


def test_a_file_that_is_written_in_between_is_tried_again() -> None:
    files = Busy({A: "---\nstatus: ready\npriority: P1\n---\n# One\n"})
    files.old, files.new = "# One", "# One more"
    after = patched("", Patch({"priority": "P0"}, expected={"priority": "P1"}), files)
    assert "priority: P0" in after
    assert "# One more" in after


def test_a_key_that_is_written_in_between_is_a_conflict() -> None:
    files = Busy({A: "---\nstatus: ready\npriority: P1\n---\n# One\n"})
    files.old, files.new = "P1", "P2"
    with pytest.raises(ConflictError) as refused:
        patched("", Patch({"priority": "P0"}, expected={"priority": "P1"}), files)
    assert refused.value.context["found"] == "P2"
    assert "priority: P2" in files.texts[A]
