"""The program in one moment that does not pass, for pictures: `python frozen.py 2026-11-17T07:14:00+00:00 up --json …`."""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime


def run(moment: datetime, arguments: list[str]) -> None:
    """Run the program; what it measures goes on as ever."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    from aiflow.adapters import system_time
    from aiflow.cli.main import main
    from aiflow.cli.session import CliSession

    CliSession.now = staticmethod(moment.astimezone)  # type: ignore[method-assign]
    system_time.local_now = moment.astimezone
    system_time.SystemTime.__init__.__defaults__ = (moment.astimezone,)
    main(arguments)


if __name__ == "__main__":
    run(datetime.fromisoformat(sys.argv[1]), sys.argv[2:])
