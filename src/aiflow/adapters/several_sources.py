"""Several request sources as one: one backlog, and each id goes to the source that owns it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.request import InvalidRequest, Problem, ProblemKind, normalize_id
from aiflow.errors import BadInputError, ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from aiflow.domain.agents.call import Feedback
    from aiflow.domain.backlog.metadata import Change
    from aiflow.domain.claims import Claimed, Comment, Dropped, Lost, NotStarted, Refusal, Settled
    from aiflow.domain.issues.telling import StoryLine
    from aiflow.domain.lifecycle import RunOutcome
    from aiflow.domain.request import Request, RequestId, RequestStatus, Value
    from aiflow.domain.runs.run import Run
    from aiflow.ports.sources import RequestEditor, RequestSource


class SeveralSources:
    """The files of a checkout and other sources; an id that none of the others owns is a file's."""

    def __init__(self, files: RequestSource, others: Sequence[RequestSource]) -> None:
        self._files = files
        self._others = tuple(others)

    @staticmethod
    def owns(request_id: RequestId) -> bool:  # noqa: ARG004 - see the next line
        """Any id may be a file's."""
        return True

    def load_all(self) -> tuple[list[Request], list[InvalidRequest]]:
        """Read every request of every source; a file under an id that another source owns can never be meant."""
        read, broken = self._files.load_all()
        foreign = [request for request in read if _owner(self._others, request.id) is not None]
        valid = [request for request in read if request not in foreign] if foreign else read
        broken = [*broken, *(InvalidRequest(each.id, each.where, (_foreign(each.id),)) for each in foreign)]
        for source in self._others:
            more, unusable = source.load_all()
            valid, broken = [*valid, *more], [*broken, *unusable]
        return valid, broken

    def load(self, request_id: RequestId) -> Request:
        """Return one request as it is now."""
        return self._of(request_id).load(request_id)

    def body(self, request_id: RequestId) -> str:
        """Return a request's text without its metadata."""
        return self._of(request_id).body(request_id)

    def status(self, request_id: RequestId) -> RequestStatus | None:
        """Return a request's status as it is now; None if there is none that can be read."""
        return self._of(request_id).status(request_id)

    def claim(self, request_id: RequestId, run_id: str) -> Claimed | Lost:
        """Show that a run works on a request."""
        return self._of(request_id).claim(request_id, run_id)

    def not_started(self, request_id: RequestId, why: NotStarted) -> Settled | None:
        """Inform the source of a request that no run of it could begin."""
        return self._of(request_id).not_started(request_id, why)

    def confirm(self, request_id: RequestId, run_id: str) -> Refusal | None:
        """Look once more just before a run's first agent call."""
        return self._of(request_id).confirm(request_id, run_id)

    def settle(self, request_id: RequestId, run_id: str, outcome: RunOutcome) -> Settled | Dropped:
        """Show what a run's end means to its request."""
        return self._of(request_id).settle(request_id, run_id, outcome)

    def may_go_on(self, request_id: RequestId) -> Refusal | None:
        """Return why a stopped run of this request may not continue."""
        return self._of(request_id).may_go_on(request_id)

    def send_back(self, request_id: RequestId, run_id: str, comment: Comment) -> Settled | Dropped:
        """Add a comment to a request and make it ready again."""
        return self._of(request_id).send_back(request_id, run_id, comment)

    def undo(self, request_id: RequestId, run_id: str) -> Settled | Dropped:
        """Show that a run's acceptance was undone."""
        return self._of(request_id).undo(request_id, run_id)

    def progress(self, run: Run) -> None:
        """Inform the source of a run's request that the run has just been saved."""
        self._of(run.request_id).progress(run)

    def feedback(self, request_id: RequestId, since: datetime | None) -> tuple[Feedback, ...]:
        """Return what people said about a request since a moment."""
        return self._of(request_id).feedback(request_id, since)

    def story(self, request_id: RequestId) -> tuple[StoryLine, ...]:
        """Return what people and aiflow said and did where a request is kept."""
        return self._of(request_id).story(request_id)

    def _of(self, request_id: str) -> RequestSource:
        return _owner(self._others, request_id) or self._files


class FilesAmongOthers:
    """The editor of request files where there are other sources, too: what those keep is edited there."""

    def __init__(self, files: RequestEditor, others: Sequence[RequestSource]) -> None:
        self._files = files
        self._others = tuple(others)

    def edit(
        self,
        request_id: RequestId,
        changes: Mapping[str, Change],
        body: tuple[str, str] | None = None,
        before: str | None = None,
    ) -> dict[str, tuple[Value, Value]]:
        """Change a file; refuse what is none, and name the place where it is edited."""
        self._require_editable(request_id)
        return self._files.edit(request_id, changes, body, before)

    def whole_text(self, request_id: RequestId) -> str:
        """Return a file's text; refuse what is none."""
        self._require_editable(request_id)
        return self._files.whole_text(request_id)

    def rewrite(self, request_id: RequestId, before: str, after: str) -> None:
        """Replace a file's text; refuse what is none."""
        self._require_editable(request_id)
        self._files.rewrite(request_id, before, after)

    def create(self, propose: Callable[[frozenset[str]], RequestId], text: str, values: Mapping[str, Value]) -> str:
        """Create a file under an id that is free and no other source's."""

        def proposed(taken: frozenset[str]) -> RequestId:
            request_id = propose(taken)
            self._require_file(request_id)
            return request_id

        return self._files.create(proposed, text, values)

    def require_free(self, request_id: str | None) -> None:
        """Refuse an id that is taken or another source's."""
        if request_id is not None:
            self._require_file(request_id)
        self._files.require_free(request_id)

    def check_text(self, text: str, request_id: RequestId | None = None) -> Request | InvalidRequest:
        """Read a text as if it were a request file."""
        return self._files.check_text(text, request_id)

    def misspelt_keys(self, request_id: RequestId) -> list[Problem]:
        """Name a file's keys that were most likely meant as one of ours."""
        return [] if _owner(self._others, request_id) is not None else self._files.misspelt_keys(request_id)

    def _require_editable(self, request_id: RequestId) -> None:
        """Refuse what another source keeps, and name the place where it is edited."""
        owner = _owner(self._others, request_id)
        if owner is not None:
            where = owner.load(request_id).where
            raise ConflictError(reason_code="EDITED_ELSEWHERE", request_id=request_id, path=where)

    def _require_file(self, request_id: str) -> None:
        if _owner(self._others, request_id) is not None:
            raise BadInputError(request_id=request_id, problem=_foreign(request_id))


def _owner(sources: Iterable[RequestSource], request_id: str) -> RequestSource | None:
    return next((source for source in sources if source.owns(normalize_id(request_id))), None)


def _foreign(request_id: str) -> Problem:
    return Problem(ProblemKind.FOREIGN_ID, None, (("value", request_id),))
