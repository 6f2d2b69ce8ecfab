"""Pages of a server inside the test's own process, opened and used without a browser."""

from __future__ import annotations

from collections.abc import Mapping

from api_bench import ORIGIN, ApiBench

FORM = {"Content-Type": "application/x-www-form-urlencoded", "Origin": ORIGIN}


class WebBench(ApiBench):
    """A checkout with pages, opened by a browser that is signed in."""

    def page(self, path: str, status: int = 200, language: str = "en") -> str:
        """Open a page and return its HTML."""
        told = self.client.get(path, headers={"Accept-Language": language})
        assert told.status_code == status, told.text
        assert told.headers["content-type"].startswith("text/html")
        return told.text

    def submit(
        self, path: str, fields: Mapping[str, str | list[str]] | None = None, *, has_script: bool = True
    ) -> tuple[int, str]:
        """Send a form, as a script of the page or as a browser without one; return the status and where or what."""
        headers = {**FORM, **({"HX-Request": "true"} if has_script else {})}
        told = self.client.post(path, data=dict(fields or {}), headers=headers, follow_redirects=False)
        return told.status_code, told.headers.get("location") or told.text
