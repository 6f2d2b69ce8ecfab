"""Where the program begins, before anything of it is imported: Ctrl-C in that moment just ends it."""

from __future__ import annotations

import gc
import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the program; until it can say something itself, it ends at Ctrl-C as any other program does."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is to be ignored, as under `nohup`
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # A backlog is tens of thousands of small objects that are all kept, and so is what is imported: looking for garbage
    # among them again and again costs more than everything else (PRF-1).
    gc.set_threshold(200_000, 20, 20)
    if sys.argv[1:] == ["next", "--json"]:
        from aiflow.cli.quick import answer_next

        answer_next()
    from aiflow.cli.main import main as run

    run()
