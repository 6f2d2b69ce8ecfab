"""Which words differ in a line and the one that took its place. Pure; what would take long is left unmarked."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

Spans = tuple[tuple[int, int], ...]
NOTHING: tuple[Spans, Spans] = ((), ())
MOST_WORDS = 200
# Japanese has no blanks between words: each character is one.
_WORD = re.compile(r"[^\W\u3000-\u9fff\uf900-\uffef]+|\s+|.", re.DOTALL)


def differing_words(old: str, new: str) -> tuple[Spans, Spans]:
    """Return where each of two lines differs from the other; nothing if they have too little in common."""
    olds, news = _WORD.findall(old), _WORD.findall(new)
    if max(len(olds), len(news)) > MOST_WORDS:
        return NOTHING
    same = _same_begin(olds, news)
    end = _same_begin(olds[same:][::-1], news[same:][::-1])
    old_middle, new_middle = olds[same : len(olds) - end], news[same : len(news) - end]
    matcher = SequenceMatcher(None, old_middle, new_middle, autojunk=False)
    common = _size(olds[:same]) + _size(olds[len(olds) - end :])
    old_parts, new_parts = [], []
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            common += _size(old_middle[old_start:old_end])
            continue
        old_parts.append((same + old_start, same + old_end))
        new_parts.append((same + new_start, same + new_end))
    if not common or 2 * common < min(_size(olds), _size(news)):  # other lines, not the same ones changed
        return NOTHING
    return _places(olds, old_parts), _places(news, new_parts)


def _size(words: list[str]) -> int:
    """Count what is not blank."""
    return sum(len(word) for word in words if not word.isspace())


def _same_begin(olds: list[str], news: list[str]) -> int:
    count = 0
    for old, new in zip(olds, news, strict=False):
        if old != new:
            break
        count += 1
    return count


def _places(words: list[str], parts: list[tuple[int, int]]) -> Spans:
    """Turn numbers of words into places in the line."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return tuple((starts[first], starts[end]) for first, end in parts if first < end)
