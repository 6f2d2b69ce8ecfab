"""A page in the person's browser: only where there is one, and where they sit in front of it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def has_browser(environ: Mapping[str, str], platform: str, *, is_terminal: bool) -> bool:
    """Return whether a browser that is opened here is seen by the person: not over SSH, in CI or without a screen."""
    is_elsewhere = any(environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT", "CI"))
    has_screen = platform == "darwin" or any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return is_terminal and has_screen and not is_elsewhere


def open_browser(address: str) -> threading.Thread | None:
    """Open an address in the browser, in the background; None if there is no browser to see."""
    if not has_browser(os.environ, sys.platform, is_terminal=sys.stdout.isatty()):
        return None

    def show() -> None:
        import webbrowser

        with contextlib.suppress(Exception):  # whatever it is, the address is on the screen
            webbrowser.open(address)

    opening = threading.Thread(target=show, name="browser", daemon=True)
    opening.start()
    return opening
