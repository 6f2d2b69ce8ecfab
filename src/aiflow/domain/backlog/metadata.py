"""Metadata (REQ-2): from what a file or a person says to a request, or to what is wrong with it (REQ-4).

One reader per key, used for reading and setting a value, so there is one rule for each.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from aiflow.domain.request import (
    DEFAULT_PRIORITY,
    DEFAULT_STATUS,
    LIST_KEYS,
    NO_WISHES,
    SWITCH_KEYS,
    UNCLEAN,
    MetadataKey,
    PartWishes,
    Priority,
    ProblemKind,
    Request,
    RequestId,
    RequestStatus,
    Value,
    is_valid_id,
    normalize_id,
    parse_instant,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


PRIORITIES: Mapping[str, Priority] = {priority.value: priority for priority in Priority}
STATUSES: Mapping[str, RequestStatus] = {status.value: status for status in RequestStatus}
KNOWN_KEYS = frozenset(key.value for key in MetadataKey)
# What YAML reads as nothing when it has no quotes.
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
# What the doctor warns about when a file lacks it; in this order.
EXPECTED_KEYS = (MetadataKey.PRIORITY, MetadataKey.STATUS, MetadataKey.CREATED_AT, MetadataKey.UPDATED_AT)


MAX_TITLE_CHARACTERS = 300


class MistakeError(Exception):
    """A value that cannot be used."""

    def __init__(self, kind: ProblemKind, **facts: str) -> None:
        super().__init__(kind.value)
        self.kind = kind
        self.facts = tuple(facts.items())


# Values as a row, in this order: what a reader of tens of thousands of files fills without looking names up. The last
# place belongs to no key and stays empty.
ROW_KEYS = (
    *("title", "priority", "status", "depends_on", "labels", "created_at", "updated_at"),
    *(*SWITCH_KEYS, "found_in", "id", ""),
)


_NO_WISHES = list(NO_WISHES)


def assemble(stem: str, where: str, row: Sequence[Any], heading: str | None) -> Request:
    """Make a request of a row of interpreted values; what is missing (None) gets REQ-2's defaults."""
    request_id: Any = stem if stem.isascii() else normalize_id(stem)
    title, priority, status, depends_on, labels, created_at, updated_at, *wishes, found_in, _, _ = row
    is_complete = priority and status and created_at and updated_at
    return Request(
        request_id,
        where,
        title or heading or request_id,
        priority or DEFAULT_PRIORITY,
        status or DEFAULT_STATUS,
        depends_on or (),
        labels or (),
        created_at,
        updated_at,
        () if is_complete else tuple(key for key in EXPECTED_KEYS if row[ROW_KEYS.index(key)] is None),
        NO_WISHES if wishes == _NO_WISHES else PartWishes(*wishes),
        found_in,
    )


def check_id(stem: str, declared: str | None) -> None:
    """Take the id from the file name; an `id` key may repeat it, not contradict it (REQ-1)."""
    if not is_valid_id(stem):
        raise MistakeError(ProblemKind.BAD_ID, value=stem)
    if declared is not None and normalize_id(declared) != normalize_id(stem):
        raise MistakeError(ProblemKind.OTHER_ID, value=declared, stem=stem)


def check_title(title: str) -> str:
    """Refuse a title that would not stand on one line."""
    text = title.strip()
    if not text or len(text) > MAX_TITLE_CHARACTERS or UNCLEAN.search(text):
        raise MistakeError(ProblemKind.BAD_TITLE, limit=str(MAX_TITLE_CHARACTERS))
    return text


def check_text(*texts: str) -> None:
    """Refuse what cannot be written as UTF-8, such as a byte that was no text on the command line."""
    for text in texts:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise MistakeError(ProblemKind.NOT_TEXT) from None


def _read_text(value: Value) -> str:
    if not isinstance(value, str):
        raise MistakeError(ProblemKind.NOT_A_VALUE)
    return value


def _read_id(value: Value) -> str:
    text = _read_text(value)
    if not is_valid_id(text):
        raise MistakeError(ProblemKind.BAD_ID, value=text)
    return normalize_id(text)


def _read_priority(value: Value) -> Priority:
    text = _read_text(value)
    if text not in PRIORITIES:
        raise MistakeError(ProblemKind.BAD_PRIORITY, value=text, allowed=", ".join(PRIORITIES))
    return PRIORITIES[text]


def _read_status(value: Value) -> RequestStatus:
    text = _read_text(value)
    if text not in STATUSES:
        raise MistakeError(ProblemKind.BAD_STATUS, value=text, allowed=", ".join(STATUSES))
    return STATUSES[text]


def _read_instant(value: Value) -> object:
    text = _read_text(value)
    moment = parse_instant(text)
    if moment is None:
        raise MistakeError(ProblemKind.BAD_DATE, value=text)
    return moment


# As YAML 1.1 reads them, in any case.
SWITCHES: Mapping[str, bool] = {"yes": True, "no": False, "true": True, "false": False, "on": True, "off": False}


def _read_switch(value: Value) -> bool:
    text = _read_text(value)
    if text.lower() not in SWITCHES:
        raise MistakeError(ProblemKind.BAD_SWITCH, value=text)
    return SWITCHES[text.lower()]


def _read_list(value: Value) -> tuple[str, ...]:
    if isinstance(value, str):
        raise MistakeError(ProblemKind.NOT_A_LIST, value=value)
    return value or ()


def _read_ids(value: Value) -> tuple[RequestId, ...]:
    ids = tuple(map(normalize_id, _read_list(value)))
    for wanted in ids:
        if not is_valid_id(wanted):
            raise MistakeError(ProblemKind.BAD_ID, value=wanted)
    return ids


# What people write when they mean one of our keys.
_OFTEN_MEANT = {"depends": "depends_on", "deps": "depends_on", "prio": "priority", "state": "status", "tags": "labels"}


def meant_key(name: str) -> str | None:
    """Return the known key that a person who wrote `name` most likely meant, if any."""
    import difflib

    plain = name.lower().replace("-", "_")
    if plain in KNOWN_KEYS:
        return plain if name not in KNOWN_KEYS else None
    close = difflib.get_close_matches(plain, sorted(KNOWN_KEYS - {"id", *SWITCH_KEYS}), n=1, cutoff=0.8)
    return _OFTEN_MEANT.get(plain) or (close[0] if close else None)


READERS: Mapping[str, Callable[[Value], object]] = {
    MetadataKey.ID: _read_id,
    MetadataKey.TITLE: _read_text,
    MetadataKey.PRIORITY: _read_priority,
    MetadataKey.STATUS: _read_status,
    MetadataKey.DEPENDS_ON: _read_ids,
    MetadataKey.LABELS: _read_list,
    MetadataKey.CREATED_AT: _read_instant,
    MetadataKey.UPDATED_AT: _read_instant,
    **dict.fromkeys(SWITCH_KEYS, _read_switch),
    MetadataKey.FOUND_IN: _read_id,
}


def parse_value(key: str, text: str) -> Value:
    """Read a value as typed on a command line: a list as `a, b`, `[a, b]` or nothing, anything else as it is."""
    if key not in LIST_KEYS:
        return text.strip()
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1]
    return tuple(item.strip().strip("'\"") for item in inner.split(",") if item.strip())


class _Any(Enum):
    ANY = "any"


ANY = _Any.ANY


class Change(NamedTuple):
    """A new value for a key; with `expected`, only if the key still says that (REQ-3)."""

    new: Value
    expected: Value | _Any = ANY


def commit_message(request_id: str, changed: Mapping[str, tuple[Value, Value]] | None) -> str:
    """Say in a commit's title what aiflow changed in a request file: values, the text alone, or all of it (REQ-8)."""
    if changed is None:
        return f"{request_id}: new request\n"
    told = (f"{key} {_shown(old)} -> {_shown(new)}" for key, (old, new) in changed.items())
    return f"{request_id}: {', '.join(told) or 'text'}\n"


def _shown(value: Value) -> str:
    return (value if isinstance(value, str) else ", ".join(value or ())) or "-"
