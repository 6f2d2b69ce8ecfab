"""The page's static files: served to anybody, by their names and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.web import static_files
from server_yard import Served, served

FOLDER = Path(static_files.__file__).parent / "static"


@pytest.fixture
def up(repository: Path) -> Iterator[Served]:
    with served(repository) as given:
        yield given


def test_every_file_is_served_as_what_it_is(up: Served) -> None:
    assert static_files.has_htmx(), "`make setup` with npm fetches it"
    names = [path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.*")]
    assert static_files.HTMX in names
    for name in names:
        answer = up.call("GET", f"/static/{name}")
        assert (answer.status, answer.body) == (200, (FOLDER / name).read_bytes()), name
        assert answer.headers["content-type"].split(";")[0] in ("text/css", "text/javascript", "image/svg+xml")
        again = up.call("GET", f"/static/{name}", {"If-None-Match": answer.headers["etag"]})
        assert again.body in (b"", answer.body)


@pytest.mark.parametrize(
    "name", ["", "vendor", "vendor/", "vendor/../page.css", "../app.py", "vendor%2f..%2f..%2fapp.py", "/etc/passwd"]
)
def test_nothing_else_is_served(up: Served, name: str) -> None:
    answer = up.call("GET", f"/static/{name}", up.bearer)
    assert (answer.status, answer.reason) == (404, "ROUTE_NOT_FOUND")
