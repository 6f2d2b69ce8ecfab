"""Call the server of a checkout with the user's token, as a script does."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aiflow.errors import EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from aiflow.ports.server import Access

CALL_SECONDS = 20.0
MOST_BYTES = 1_000_000


class ServerCalls:
    """Calls servers of this user; the token is in a header, never in an address."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def new_link(self, url: str) -> tuple[str, str]:
        """Ask a server for an address with which one browser can sign in; return it and when it is over."""
        told = self._post(url, "/api/sessions/code")
        code, expires = told.get("code"), told.get("expires_at")
        if not isinstance(code, str) or not isinstance(expires, str):
            raise EnvironmentProblemError(path=url, problem=words("server.no_code"))
        link = told.get("url")
        return link if isinstance(link, str) and "#code=" in link else f"{url}/sign-in#code={code}", expires

    def _post(self, url: str, path: str) -> dict[str, Any]:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=CALL_SECONDS)
        headers = {"Authorization": f"Bearer {self._access.token()}", "Content-Type": "application/json"}
        try:
            connection.request("POST", path, "{}", headers)
            answer = connection.getresponse()
            told = json.loads(answer.read(MOST_BYTES))
        except (OSError, ValueError, http.client.HTTPException, RecursionError) as error:
            raise EnvironmentProblemError(path=url, problem=str(error)) from error
        finally:
            connection.close()
        if answer.status >= 400 or not isinstance(told, dict):
            refusal = told.get("error", {}) if isinstance(told, dict) else {}
            raise EnvironmentProblemError(
                path=url, problem=refusal.get("message") or words("server.status", status=answer.status)
            )
        return told
