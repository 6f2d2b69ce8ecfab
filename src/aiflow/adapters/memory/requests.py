"""Request files in memory: texts by id, read and edited as the files are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from aiflow.adapters.markdown_requests.edit import Edit, Rewriting, apply_edit, apply_values, merge_texts
from aiflow.adapters.markdown_requests.patch import body_start
from aiflow.adapters.markdown_requests.scan import read_request
from aiflow.adapters.markdown_requests.store import MarkdownRequests, misspelt_in
from aiflow.domain.request import InvalidRequest, Request, RequestId, normalize_id
from aiflow.errors import ConflictError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiflow.domain.backlog.metadata import Change
    from aiflow.domain.request import Problem, Value

# A text is read in one way: the same one need not be read again and again.
_read = lru_cache(4096)(read_request)


@dataclass
class MemoryRequests:
    """Request files as texts by id."""

    texts: dict[RequestId, str] = field(default_factory=dict)

    def load(self) -> tuple[list[Request], list[InvalidRequest]]:
        """Read every request; a broken one stops nothing."""
        results = [_read(i, f"requests/{i}.md", text.encode()) for i, text in self.texts.items()]
        valid = [result for result in results if isinstance(result, Request)]
        return valid, [result for result in results if isinstance(result, InvalidRequest)]

    def read(self, request_id: RequestId) -> Request | InvalidRequest:
        """Read one request as it is now."""
        return _read(request_id, f"requests/{request_id}.md", self._text(request_id).encode())

    def body(self, request_id: RequestId) -> str:
        """Return a request's text without its metadata."""
        text = self._text(request_id)
        return text[body_start(text) :]

    def edit(
        self,
        request_id: RequestId,
        changes: Mapping[str, Change],
        body: tuple[str, str] | None = None,
        before: str | None = None,
    ) -> dict[str, tuple[Value, Value]]:
        """Change keys (and the body), return key -> (old, new) of what really changed."""
        edit = Edit(request_id, changes, body, f"requests/{request_id}.md", before)
        self.texts[request_id], changed = apply_edit(self._text(request_id), edit)
        return changed

    def create(self, propose: Callable[[frozenset[str]], RequestId], text: str, values: Mapping[str, Value]) -> str:
        """Create a request under an id that is free, return its path."""
        taken = frozenset(request_id.casefold() for request_id in self.texts)
        request_id = propose(taken)
        path = f"requests/{request_id}.md"
        if request_id.casefold() in taken:
            raise ConflictError(reason_code="REQUEST_EXISTS", request_id=request_id, path=path)
        self.texts[request_id] = apply_values(text, values, request_id, path)
        return path

    def require_free(self, request_id: str | None) -> None:
        """Refuse an id that is taken."""
        wanted = normalize_id(request_id).casefold() if request_id is not None else None
        for existing in self.texts:
            if existing.casefold() == wanted:
                path = f"requests/{existing}.md"
                raise ConflictError(reason_code="REQUEST_EXISTS", request_id=existing, path=path)

    def whole_text(self, request_id: RequestId) -> str:
        """Return a request's whole text, to be edited as a whole."""
        return self._text(request_id)

    def rewrite(self, request_id: RequestId, before: str, after: str) -> None:
        """Replace the text that a person began with; keys that were changed meanwhile stay as they are now."""
        self.texts[request_id] = merge_texts(
            self._text(request_id), Rewriting(request_id, f"requests/{request_id}.md", before, after)
        )

    def check_text(self, text: str, request_id: RequestId | None = None) -> Request | InvalidRequest:
        """Read a text as if it were a request, a new one or that of an id."""
        return MarkdownRequests.check_text(text, request_id)

    def misspelt_keys(self, request_id: RequestId) -> list[Problem]:
        """Name a request's own keys that were most likely meant as one of ours."""
        return misspelt_in(self._text(request_id))

    def _text(self, request_id: RequestId) -> str:
        try:
            return self.texts[request_id]
        except KeyError:
            raise NotFoundError(request_id=request_id) from None
