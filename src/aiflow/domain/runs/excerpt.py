"""The beginning and the end of a program's output (RUN-3): what an agent gets of a long output.

A compiler says what is wrong at the beginning, a test runner at the end.
"""

from __future__ import annotations

HEAD_BYTES, TAIL_BYTES = 2_000, 4_000


def excerpt(head: bytes, tail: bytes, size: int) -> str:
    """Join the first and the last bytes of an output of so many, and say what is left out between them.

    What is cut is cut at the end of a line, where one is near.
    """
    if size <= len(tail):
        return _text(tail)
    if size <= len(head) + len(tail):
        return _text(head + tail[len(head) + len(tail) - size :])
    first, _, _ = head.rpartition(b"\n")
    _, _, last = tail.partition(b"\n")
    first, last = first or head, last or tail
    left_out = size - len(first) - len(last)
    return f"{_text(first)}\n[aiflow] {left_out:,} bytes of this output are left out here\n{_text(last)}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip("\n").rstrip()
