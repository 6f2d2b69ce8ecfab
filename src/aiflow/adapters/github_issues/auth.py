"""Who we are to GitHub (ISS-1): the owner of a token, or a GitHub App, whose tokens are renewed before they end.

A token is in memory only, and shown by nothing.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, NamedTuple, Protocol

from aiflow.adapters.extras import github_missing
from aiflow.adapters.github_issues import read
from aiflow.adapters.github_issues.limits import server_time
from aiflow.adapters.github_issues.transport import Ask
from aiflow.errors import EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from pathlib import Path

    from aiflow.adapters.github_issues.line import CallLine
    from aiflow.domain.issues.issue import Account

# An App's own signature counts for ten minutes at most, and clocks differ.
_SIGNED_FROM_SECONDS, _SIGNED_FOR_SECONDS = -60, 540
_RENEWED_BEFORE_SECONDS = 300.0


class Credentials(Protocol):
    """Proves who we are."""

    def headers(self) -> dict[str, str]:
        """Return the headers that every call carries."""

    def forget(self) -> bool:
        """Forget what GitHub refused; return whether there may be a new one."""

    def account(self, line: CallLine) -> Account:
        """Ask GitHub who we are."""


class TokenCredentials:
    """A person's or a machine account's token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def headers(self) -> dict[str, str]:
        """Return the headers that every call carries."""
        return _bearer(self._token)

    def forget(self) -> bool:
        """Return that there is no other one."""
        return False

    def account(self, line: CallLine) -> Account:
        """Ask GitHub whose token it is."""
        ask = Ask("GET", "/user")
        return read.known_account(line.document(ask, line.exchange(ask, self.headers())))


class _Token(NamedTuple):
    """An App's token for one repository, and when it ends in seconds that only grow."""

    text: str
    ends_at: float


class AppCredentials:
    """A GitHub App, installed where the repository is."""

    def __init__(self, line: CallLine, app_id: str, key_path: Path) -> None:
        self._line = line
        self._app_id = app_id
        self._key_path = key_path
        self._making = line.time.mutex()
        self._token: _Token | None = None

    def headers(self) -> dict[str, str]:
        """Return the headers that every call carries, with a new token if the old one is about to end."""
        with self._making:
            token = self._token
            if token is None or token.ends_at - self._line.time.monotonic() < _RENEWED_BEFORE_SECONDS:
                token = self._token = self._new_token()
        return _bearer(token.text)

    def forget(self) -> bool:
        """Let the next call have a new token."""
        had, self._token = self._token, None
        return had is not None

    def account(self, line: CallLine) -> Account:
        """Ask GitHub which App it is, and for the account it writes as."""
        ask = Ask("GET", "/app")
        slug = read.text_in(line.document(ask, line.exchange(ask, self._signature())), "slug")
        ask = Ask("GET", f"/users/{slug}%5Bbot%5D")
        return read.known_account(line.document(ask, line.exchange(ask, self.headers())))

    def _new_token(self) -> _Token:
        signature = self._signature()
        ask = Ask("GET", f"/repos/{self._line.place.repo}/installation")
        answer = self._line.exchange(ask, signature, takes=(404,))
        if answer.status == 404:
            raise self._line.place.problem("GITHUB_NOT_FOUND", ask, status=404)
        installation = read.number_in(self._line.document(ask, answer), "id")
        # For this repository only: what the App may do elsewhere is nothing that we need.
        name = self._line.place.repo.partition("/")[2]
        ask = Ask("POST", f"/app/installations/{installation}/access_tokens", body={"repositories": [name]})
        answer = self._line.exchange(ask, signature)
        document = self._line.document(ask, answer)
        time = self._line.time
        left = read.time_in(document, "expires_at") - server_time(answer, time.now())
        return _Token(read.text_in(document, "token"), time.monotonic() + left.total_seconds())

    def _signature(self) -> dict[str, str]:
        """Sign a statement that we are the App (RS256)."""
        now = int(self._line.time.now().timestamp())
        claims = {"iat": now + _SIGNED_FROM_SECONDS, "exp": now + _SIGNED_FOR_SECONDS, "iss": self._app_id}
        said = b".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims))
        return _bearer((said + b"." + _encoded(self._sign(said))).decode())

    def _sign(self, said: bytes) -> bytes:
        try:
            from cryptography.hazmat.primitives import hashes, serialization
            from cryptography.hazmat.primitives.asymmetric import padding, rsa
        except ImportError as error:
            problem = words("github_problem.no_package", package="cryptography")
            raise github_missing(problem) from error
        try:
            key = serialization.load_pem_private_key(self._key_path.read_bytes(), password=None)
        except (OSError, ValueError, TypeError) as error:
            raise self._no_key() from error
        if not isinstance(key, rsa.RSAPrivateKey):
            raise self._no_key()
        return key.sign(said, padding.PKCS1v15(), hashes.SHA256())

    def _no_key(self) -> EnvironmentProblemError:
        problem = words("github_problem.no_key", path=str(self._key_path))
        place = self._line.place
        return EnvironmentProblemError(
            reason_code="GITHUB_NOT_SIGNED_IN", endpoint=place.endpoint, repo=place.repo, problem=problem
        )


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
