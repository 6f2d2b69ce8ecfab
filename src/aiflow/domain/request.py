"""A request (REQ-1, REQ-2): one item of the backlog, read from a file or an issue."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, NamedTuple, NewType

if TYPE_CHECKING:
    from aiflow.domain.claims import Refusal

RequestId = NewType("RequestId", str)
# A metadata value as written: text, a list of texts, or nothing.
Value = str | tuple[str, ...] | None


class Priority(StrEnum):
    """How urgent a request is; the text order is the order of urgency (D59 §4.1)."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"


class RequestStatus(StrEnum):
    """The status of a request (REQ-2)."""

    DRAFT = "draft"
    READY = "ready"
    RUNNING = "running"
    BLOCKED = "blocked"
    DONE = "done"
    ARCHIVED = "archived"


class MetadataKey(StrEnum):
    """The metadata keys aiflow reads; any other key is the user's own and is never touched."""

    ID = "id"
    TITLE = "title"
    PRIORITY = "priority"
    STATUS = "status"
    DEPENDS_ON = "depends_on"
    LABELS = "labels"
    CREATED_AT = "created_at"
    UPDATED_AT = "updated_at"
    PLAN = "plan"
    REVIEW = "review"
    BASELINE = "baseline"
    FOUND_IN = "found_in"


LIST_KEYS = frozenset({MetadataKey.DEPENDS_ON, MetadataKey.LABELS})
DATE_KEYS = frozenset({MetadataKey.CREATED_AT, MetadataKey.UPDATED_AT})
EDITABLE_KEYS = tuple(key for key in MetadataKey if key is not MetadataKey.ID)

SWITCH_KEYS = (MetadataKey.PLAN, MetadataKey.REVIEW, MetadataKey.BASELINE)

DEFAULT_PRIORITY = Priority.P3
DEFAULT_STATUS = RequestStatus.DRAFT


# Only a source that knows of runs elsewhere keeps a request for one of these.
_ELSEWHERE = ("REQUEST_LOCKED", "AWAITING_ACCEPTANCE")


class PartWishes(NamedTuple):
    """Which parts a request's runs are to have or not (RUN-17, RUN-18); None leaves it to the settings."""

    plan: bool | None = None
    review: bool | None = None
    baseline: bool | None = None


NO_WISHES = PartWishes()


class Request(NamedTuple):
    """One valid backlog item; a named tuple because a backlog has tens of thousands of them (PRF-1).

    `where` is its place as a person opens it: the path of its file below the root, or a URL. `kept` is what its source
    itself knows to keep it from running: files know of nothing, an issue may be worked on elsewhere. `freed` is what it
    no longer waits for, because it will never be done. `is_overdue` if its source has waited for a person's
    decision for more than a day (ISS-8). `found_in` names the request in whose run an agent proposed it (REQ-10).
    """

    id: RequestId
    where: str
    title: str
    priority: Priority = DEFAULT_PRIORITY
    status: RequestStatus = DEFAULT_STATUS
    depends_on: tuple[RequestId, ...] = ()
    labels: tuple[str, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    missing: tuple[MetadataKey, ...] = ()
    wishes: PartWishes = NO_WISHES
    found_in: RequestId | None = None
    kept: Refusal | None = None
    freed: tuple[str, ...] = ()
    is_overdue: bool = False

    @property
    def is_follow_up(self) -> bool:
        """Whether an agent proposed it, and no person has decided about it (REQ-10)."""
        return self.found_in is not None and self.status is RequestStatus.DRAFT

    @property
    def is_held_elsewhere(self) -> bool:
        """Whether a run that is not of this checkout works on it, as far as its source knows."""
        return self.kept is not None and self.kept.reason_code == "REQUEST_LOCKED"

    @property
    def run_elsewhere(self) -> str | None:
        """The run that is not of this checkout and works on it, or came to its end last, as far as its source knows."""
        kept = self.kept if self.kept is not None and self.kept.reason_code in _ELSEWHERE else None
        return next((fact for name, fact in kept.facts if name in ("holder", "run_id")), None) if kept else None


class ProblemKind(Enum):
    """What can be wrong with a request file (REQ-4); the words are in `messages/`."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    NOT_TEXT = "not_text"
    NOT_A_FILE = "not_a_file"
    UNREADABLE = "unreadable"
    BROKEN_LINK = "broken_link"
    LINK_OUTSIDE = "link_outside"
    METADATA_TOO_LARGE = "metadata_too_large"
    TOO_DEEP = "too_deep"
    NOT_CLOSED = "not_closed"
    BAD_YAML = "bad_yaml"
    NOT_A_MAPPING = "not_a_mapping"
    REPEATED_KEY = "repeated_key"
    NOT_A_LIST = "not_a_list"
    NOT_A_VALUE = "not_a_value"
    ALIASED = "aliased"
    BAD_ID = "bad_id"
    OTHER_ID = "other_id"
    BAD_STATUS = "bad_status"
    BAD_PRIORITY = "bad_priority"
    BAD_DATE = "bad_date"
    BAD_SWITCH = "bad_switch"
    BAD_TITLE = "bad_title"
    BAD_KEY = "bad_key"
    SAME_ID = "same_id"
    FOREIGN_ID = "foreign_id"
    MISSPELT_KEY = "misspelt_key"
    CANNOT_EDIT = "cannot_edit"


class Problem(NamedTuple):
    """One thing wrong with a request file, with its line where there is one."""

    kind: ProblemKind
    line: int | None = None
    facts: tuple[tuple[str, str], ...] = ()


class InvalidRequest(NamedTuple):
    """A request that cannot be used: listed with what is wrong, never run (REQ-4).

    `called` is the name its source has for it, where that is not the id it counts as.
    """

    id: RequestId
    where: str
    problems: tuple[Problem, ...]
    declared_id: RequestId | None = None
    called: RequestId | None = None

    @property
    def names(self) -> frozenset[str]:
        """The ids under which a person may look for it: the one it counts as, the one it claims, its source's."""
        return frozenset(filter(None, (self.id, self.declared_id, self.called)))

    @property
    def reason_code(self) -> str:
        """The exclusion code for it."""
        return "DUPLICATE_ID" if self.is_duplicate else "REQUEST_INVALID"

    @property
    def is_duplicate(self) -> bool:
        """Whether the trouble is another file with the same id."""
        return any(problem.kind is ProblemKind.SAME_ID for problem in self.problems)


# What a line of text may not hold: control characters, line breaks of any kind, what turns the writing direction
# around, halves of characters. A full-width blank or a joined emoji is fine.
UNCLEAN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

MAX_ID_BYTES = 180
# The usual ids, which need no closer look.
PLAIN_ID = r"(?!(?i:readme)(?![\w-]))[A-Za-z0-9_][A-Za-z0-9_-]{0,99}"
_PLAIN_ID = re.compile(PLAIN_ID)
# What git refuses in a ref, what a file name cannot hold, and what a shell or an option parser would trip over; made
# a pattern when it is needed, which is seldom (PRF-1).
_FORBIDDEN_IN_ID = r"""(?i)[\s/\\~^:?*\[\]'"`$<>|&;(){}!#%]|\.\.|@\{|^[-.@]|\.$|\.lock$|\.md$"""


def normalize_id(text: str) -> RequestId:
    """Give an id the one spelling it is compared in (Unicode NFC)."""
    return RequestId(text if text.isascii() else unicodedata.normalize("NFC", text))


def is_valid_id(text: str) -> bool:
    """Return whether an id is usable as a file name, a lock name and a git ref (REQ-2); a `README.md` is no request."""
    if _PLAIN_ID.fullmatch(text):
        return True
    return (
        bool(text)
        and text.isprintable()
        and len(text.encode("utf-8", "surrogatepass")) <= MAX_ID_BYTES
        and re.search(_FORBIDDEN_IN_ID, text) is None
        and not is_readme(text)
    )


def is_readme(name: str) -> bool:
    """Return whether a name is not a request's but that of a file about the folder (README, README.ja.md)."""
    return name[:7].lower() in ("readme", "readme.")


MAX_INSTANT_CHARACTERS = 64
_SPACE_BEFORE_OFFSET = r"\s+(?=(?:[+-]\d\d:?\d\d|[Zz])$)"


def parse_instant(text: str) -> datetime | None:
    """Read a date or timestamp as an instant, or None if it is neither.

    Without an offset it is UTC, a bare date its first moment: never the local zone, so that every machine agrees.
    """
    if len(text) > MAX_INSTANT_CHARACTERS:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(re.sub(_SPACE_BEFORE_OFFSET, "", text.strip().upper()))
        except ValueError:
            return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
