"""Find servers that are at work: what is written down is believed only if the server answers with the same id."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

ANSWER_SECONDS = 5.0
MOST_BYTES = 10_000


def answering(url: str, seconds: float = ANSWER_SECONDS) -> str | None:
    """Return the instance id of the aiflow server that answers at an address; None if none does."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    connection = http.client.HTTPConnection(parts.hostname or "", port, timeout=seconds)
    try:
        connection.request("GET", "/api/health")
        told = json.loads(connection.getresponse().read(MOST_BYTES))
    except (OSError, ValueError, http.client.HTTPException, RecursionError):
        return None
    finally:
        connection.close()
    found = told.get("instance_id") if isinstance(told, dict) else None
    return found if isinstance(found, str) else None
