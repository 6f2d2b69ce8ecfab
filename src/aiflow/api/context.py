"""What every route has at hand: the checkout as it is now, and who calls in which language."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from starlette.requests import Request as HttpRequest

from aiflow.api.connection import CallerLimits
from aiflow.api.events import EventHub
from aiflow.messages import LANGUAGES, Texts
from aiflow.usecases.backlog.missing_merges import base_now, missing_merges
from aiflow.usecases.engine import Voice
from aiflow.usecases.server.look import BacklogDesk
from aiflow.wiring.live import LivePorts
from aiflow.wiring.server import StoreDoor, neighbours_of, server_issues

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from aiflow.domain.backlog.board import Board
    from aiflow.domain.backlog.selection import Barrier
    from aiflow.domain.request import Request
    from aiflow.domain.server.guard import Addresses
    from aiflow.ports.server import Neighbours, ServerRecord, ServerRecords
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.queue.desk import StoreView
    from aiflow.usecases.read_backlog import BacklogSources
    from aiflow.usecases.server.issue_watch import ServerIssues
    from aiflow.usecases.server.sign_in import Caller, SignIn
    from aiflow.usecases.server.start_work import WorkStarter
    from aiflow.usecases.server.watch import CheckoutWatch
    from aiflow.wiring import Project

CALLER = "caller"


@dataclass(slots=True)
class Server:
    """One server at work: made once, used by every route from any thread."""

    live: LivePorts
    sign_in: SignIn
    work: WorkStarter
    record: ServerRecord
    records: ServerRecords
    addresses: Addresses
    is_unguarded: bool
    port: int
    language: str
    now: Callable[[], datetime]
    watch: CheckoutWatch
    warnings: list[str] = field(default_factory=list)
    patience: CallerLimits = field(default_factory=CallerLimits)
    events: EventHub = field(init=False)
    store: StoreDoor = field(init=False)
    issues: ServerIssues = field(init=False)
    desk: BacklogDesk = field(default_factory=BacklogDesk)
    _glanced: object = None
    neighbours: Neighbours = field(init=False)

    def __post_init__(self) -> None:
        self.events = EventHub(self.watch, self.record)
        self.store = StoreDoor(self.live)
        self.issues = server_issues(self.live, self.store, self.language)
        self.neighbours = neighbours_of(self.records, self.record)

    @property
    def cookie(self) -> str:
        """The name of the session's cookie: another server of the same host has another one."""
        return f"aiflow_{self.port}"

    def call(self, http: HttpRequest) -> CallContext:
        """Give a route what it needs for one call."""
        return CallContext(self, texts_for(http, self.language), http.scope.get(CALLER))

    def who(self, http: HttpRequest) -> Caller | None:
        """Return who brought a token or a session's cookie with a call."""
        return self.sign_in.who(bearer_of(http), http.cookies.get(self.cookie))

    def glance(self) -> BacklogSources:
        """Give the backlog as a page looks at it; exactly as it is if the watcher saw a request change since."""
        seen, project = self.watch.requests_seen, self.project
        if seen is not self._glanced:
            self._glanced = seen
            return project.sources
        return project.glance

    @property
    def project(self) -> Project:
        """The checkout, with the settings as they are now."""
        return self.live.project()


@dataclass(slots=True)
class CallContext:
    """One call: the words of its language, and who made it."""

    server: Server
    texts: Texts
    caller: Caller | None

    @property
    def person(self) -> str:
        """The name that the journal records."""
        return self.caller.name if self.caller else ""

    @property
    def session_id(self) -> str | None:
        """The caller's session, if they signed in; programs have none."""
        return self.caller.session_id if self.caller else None

    @property
    def engine(self) -> Engine:
        """The engine in the hands of this caller."""
        engine = self.server.live.engine(Voice(self.texts, warn=self.server.warnings.append))
        return replace(engine, journal=self.server.project.journal_of(self.person))

    def look(self) -> Board:
        """Look at the backlog for a page: in a large one, what was written in its place a second ago may be missing."""
        engine = replace(self.engine, backlog=self.server.glance())
        return self.server.desk.look(engine, self.server.project.auto_records)

    def engine_at(self, root: str) -> Engine:
        """Give the engine of another checkout of this machine."""
        return LivePorts(root).engine(Voice(self.texts, warn=self.server.warnings.append))

    def view(self, namespace: str | None = None, *, is_to_write: bool = False) -> StoreView:
        """Give the queue store; for a question none is started."""
        journal = self.server.project.journal_of(self.person)
        return self.server.store.view(journal, namespace, is_to_write=is_to_write)

    def missing_merges(self, request: Request) -> tuple[Barrier, ...]:
        """Name the done dependencies whose merge is not in the base branch of what runs next."""
        if not request.depends_on:  # most have none, and then git is not asked
            return ()
        engine = self.engine
        return missing_merges(engine, request, base_now(engine, self.server.project.auto_records))


def bearer_of(http: HttpRequest) -> str | None:
    """Return the token that a program brought; an empty one is one that is wrong, another scheme none."""
    scheme, _, token = http.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def texts_for(http: HttpRequest, default: str) -> Texts:
    """Choose the language of an answer: the page's own choice, then what the browser or program asks for."""
    chosen = http.cookies.get("aiflow_lang")
    if chosen in LANGUAGES:
        return Texts(chosen)
    asked = [_language(part) for part in http.headers.get("accept-language", "").split(",")]
    liked = max((each for each in asked if each[0] in LANGUAGES), key=lambda each: each[1], default=(default, 1.0))
    return Texts(liked[0] if liked[1] > 0 else default)


def _language(part: str) -> tuple[str, float]:
    """Return one language of a list and how much it is liked; the first of those that are liked most is taken."""
    name, _, liking = part.partition(";")
    try:
        weight = float(liking.strip().removeprefix("q="))
    except ValueError:
        weight = 1.0
    return name.strip().lower().partition("-")[0], weight
