"""`aiflow next --json` without click (PRF-1): to import that takes as long as to read thousands of requests.

Other programs ask this again and again, and in these words there is nothing to parse. The answer is the command's own;
whatever is in its way, from a mistake in the settings to a full disk, is left to the program, which starts again.
"""

from __future__ import annotations

import contextlib
import os
import sys


def answer_next() -> None:
    """Print the answer and end the process; return if that did not work out."""
    if sys.getfilesystemencoding() != "utf-8" or None in (sys.stdin, sys.stdout, sys.stderr):
        return
    with contextlib.suppress(Exception):
        _print_next()
        os._exit(0)


def _print_next() -> None:
    from aiflow.cli.language import find_language
    from aiflow.cli.session import CliSession, use_texts
    from aiflow.cli.terminal.print_json import print_json
    from aiflow.messages import Texts
    from aiflow.usecases.backlog.next import next_request
    from aiflow.usecases.shapes.backlog import next_request_result

    texts = Texts(find_language([]))
    use_texts(texts)
    session = CliSession(".", (), texts)
    answer = next_request(session.project.sources, session.locks, is_brief=True)
    print_json(next_request_result(answer.selection))
