"""What may be in the folder of the request files."""

from __future__ import annotations

import pytest

from aiflow.domain.backlog.folder import is_request_file, strangers
from aiflow.domain.request import is_valid_id

pytestmark = pytest.mark.spec("REQ-2")


@pytest.mark.parametrize(
    ("name", "is_request", "is_stranger"),
    [
        ("RQ-1.md", True, False),
        ("依頼.md", True, False),
        ("readme-first.md", True, False),
        ("README.md", False, False),
        ("Readme.ja.md", False, False),
        ("readme.txt", False, False),
        ("README", False, False),
        (".gitkeep", False, False),
        (".x.md", False, False),
        ("__init__.py", False, True),
        ("shot.png", False, True),
        ("RQ-1.md.orig", False, True),
        ("done/RQ-1.md", False, True),
        (".github/x.yml", False, True),
    ],
)
def test_requests_and_strangers_are_told_by_their_names(name: str, is_request: bool, is_stranger: bool) -> None:
    if "/" not in name:
        assert is_request_file(name) is is_request
    assert strangers("a/b", [f"a/b/{name}"]) == ((f"a/b/{name}",) if is_stranger else ())


@pytest.mark.parametrize(
    ("text", "is_valid"), [("README", False), ("readme", False), ("README-1", True), ("RQ-1", True)]
)
def test_readme_is_no_id(text: str, is_valid: bool) -> None:
    assert is_valid_id(text) is is_valid
