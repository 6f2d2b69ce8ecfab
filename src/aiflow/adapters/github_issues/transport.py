"""One call over HTTP (`aiflow-local[github]`): what is asked, what is answered, and whether it can have happened.

The rest of the adapter knows these values only, so that a test can stand in the place of the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from aiflow.adapters.extras import github_missing
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Mapping

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
Query = tuple[tuple[str, str], ...]


class Ask(NamedTuple):
    """One call: a path below the API's address, and perhaps a document."""

    method: str
    path: str
    query: Query = ()
    body: object = None

    @property
    def is_write(self) -> bool:
        """Whether it changes something; a new token for an App is nothing that anybody sees."""
        return self.method != "GET" and not self.path.startswith("/app/")

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Answer(NamedTuple):
    """What came back; names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


class NotSentError(Exception):
    """Nothing was sent: the call has certainly not happened."""


class LostError(Exception):
    """No whole answer came: the call may have happened."""


class Transport(Protocol):
    """Carries a call to GitHub and the answer back; follows no redirect."""

    def send(self, ask: Ask, headers: Mapping[str, str]) -> Answer:
        """Send one call; raises that it was not sent or that its answer was lost."""

    def close(self) -> None:
        """Close the connections that are kept."""


class HttpTransport:
    """Calls to one address, with connections that are kept; for any number of threads."""

    def __init__(self, api_url: str, read_seconds: float = READ_SECONDS) -> None:
        try:
            import httpx2
        except ImportError as error:
            problem = words("github_problem.no_package", package="httpx2")
            raise github_missing(problem) from error
        self._httpx = httpx2
        self._api_url = api_url.rstrip("/")
        self._read_seconds = read_seconds
        timeout = httpx2.Timeout(read_seconds, connect=CONNECT_SECONDS)
        self._client = httpx2.Client(timeout=timeout, follow_redirects=False)

    def send(self, ask: Ask, headers: Mapping[str, str]) -> Answer:
        """Send one call."""
        url = f"{self._api_url}{ask.path}"
        document = {} if ask.body is None else {"json": ask.body}
        try:
            said = self._client.request(ask.method, url, params=list(ask.query), headers=dict(headers), **document)  # type: ignore[arg-type]
        except (self._httpx.ConnectError, self._httpx.ConnectTimeout, self._httpx.PoolTimeout) as error:
            raise NotSentError(_line(error)) from error
        except (self._httpx.ProxyError, self._httpx.UnsupportedProtocol, self._httpx.LocalProtocolError) as error:
            raise NotSentError(_line(error)) from error
        except self._httpx.TimeoutException as error:
            raise LostError(words("github_problem.no_answer", seconds=f"{self._read_seconds:g}")) from error
        except self._httpx.RequestError as error:
            raise LostError(_line(error)) from error
        return Answer(said.status_code, {name.lower(): value for name, value in said.headers.items()}, said.content)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
