"""A window of a browser that is watched: what it complains of, and whom it asks."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request, WebError

from browser.look import Look
from e2e.up import Up

# Only what hangs takes this long.
PATIENCE_MILLISECONDS = 90_000
# What was under way when the server went: the browser says it, and htmx when it was one of its own calls.
CUT_OFF = r"net::ERR_|htmx:error: .*TypeError: (Failed to fetch|network error)"
# Chromium tells most of these on the console, too, but not of a policy that only reports.
TELL_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`content security policy: ${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}`));
"""


class NewPage(Protocol):
    """Opens one more window."""

    def __call__(
        self, *, look: Look | None = None, up: Up | None = None, is_signed_in: bool = True, **more: object
    ) -> Page:
        """Open it; what is not said is as with `page`, and `more` goes to `new_context`."""


class Fine(Protocol):
    """Looks at a page in both themes."""

    def __call__(self, page: Page, name: str = "") -> None:
        """Fail for everything serious that axe finds in either; with a name, take a picture of each."""


class Picture(Protocol):
    """Takes a picture."""

    def __call__(self, page: Page, name: str, theme: str = "") -> Path | None:
        """Write the whole page to `$AIFLOW_PICTURES/<name>-<look>.png`, if that folder is given."""


class Watch:
    """What windows complained of: errors on the console or in scripts, violations of the policy, strange hosts."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self._allowed: list[str] = []
        self._awaited: list[str] = []

    def allow(self, pattern: str, *, must_come: bool = True) -> None:
        """Let complaints be in which this regular expression is found; one must come, unless that is left to chance."""
        self._allowed.append(pattern)
        if must_come:
            self._awaited.append(pattern)

    def follow(self, context: BrowserContext) -> None:
        """Hear all windows of a context."""
        context.add_init_script(TELL_VIOLATIONS)
        context.on("console", self._hear)
        context.on("weberror", self._hear_script)
        context.on("request", self._look_where)

    def judge(self) -> None:
        """Fail for what was not allowed, and for what was allowed and never came."""
        bad = [each for each in self.complaints if not any(re.search(pattern, each) for pattern in self._allowed)]
        assert bad == [], bad
        unused = [pattern for pattern in self._awaited if not any(re.search(pattern, each) for each in self.complaints)]
        assert unused == [], f"allowed, but it never came: {unused}"

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _hear_script(self, error: WebError) -> None:
        self.complaints.append(f"script: {error.error}")

    def _look_where(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.hostname != "127.0.0.1":
            self.complaints.append(f"request to another host: {request.url}")


class Windows:
    """Opens windows, each a browser of its own with its own cookies, and closes them."""

    def __init__(self, browser: Browser, watch: Watch) -> None:
        self._browser, self._watch = browser, watch
        self._contexts: list[BrowserContext] = []

    def open(self, up: Up, look: Look, *, is_signed_in: bool = True, **more: object) -> Page:
        """Open an empty window in front of a server; paths are enough as addresses."""
        options = {**look.context, "base_url": up.url, **more}
        context = self._browser.new_context(**options)
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        self._watch.follow(context)
        if is_signed_in:
            sign_in(context, up)
        return context.new_page()

    def close(self) -> None:
        """Close all of them, when all that they complained of has been heard."""
        for context in self._contexts:
            for page in context.pages:
                with contextlib.suppress(Error):  # it shows no page, or is gone
                    page.evaluate("() => 0")
            context.close()
        self._contexts.clear()


def new_code(up: Up) -> str:
    """Return a new code to sign in with."""
    answer = up.call("POST", "/api/sessions/code")
    assert answer.status in (200, 201), answer
    return str(answer.shape["code"])


def sign_in(context: BrowserContext, up: Up, name: str = "Ann") -> None:
    """Sign a browser in, without a page."""
    form: dict[str, str | float | bool] = {"code": new_code(up), "name": name}
    answer = context.request.post("/sign-in", form=form, headers={"Origin": up.url}, max_redirects=0)
    assert answer.status == 303, answer.text()
