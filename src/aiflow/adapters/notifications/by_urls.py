"""Sends one note by apprise (`aiflow-local[notify]`); run as a program of its own, so that it can be given up on.

The note is the JSON document on standard input; the addresses, which hold secrets, come in one variable and are never
printed.
"""

from __future__ import annotations

import json
import logging
import os
import sys

from aiflow.adapters.notifications import URLS_VARIABLE

NOT_INSTALLED, NO_ADDRESS, NOT_SENT = 3, 2, 1


def main() -> int:
    """Send the note on standard input to every address."""
    try:
        import apprise
        from apprise.utils.parse import parse_urls
    except ImportError:
        from aiflow.adapters.extras import extra_install

        _say(f"apprise is not installed: {extra_install('notify')}")
        return NOT_INSTALLED
    logging.disable(logging.CRITICAL)  # what it says may have an address in it
    note = json.load(sys.stdin)
    services = apprise.Apprise()
    urls = parse_urls(  # type: ignore[no-untyped-call]
        os.environ.get(URLS_VARIABLE, "")
    )
    unknown = sum(not services.add(url) for url in urls)
    if unknown or not urls:
        _say(f"{unknown} of {len(urls)} addresses cannot be used")
        return NO_ADDRESS
    body = "\n".join(filter(None, (note["text"], note["command"], note["link"])))
    failed = [service.service_name for service in services if not service.notify(title=note["title"], body=body)]
    if failed:
        _say(f"not sent: {', '.join(map(str, failed))}")
    return NOT_SENT if failed else 0


def _say(problem: str) -> None:
    sys.stderr.write(f"{problem}\n")


if __name__ == "__main__":
    sys.exit(main())
