"""GitHub's webhook (ISS-1): whoever has the secret may wake the watch; polling finds what does not come this way."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from aiflow.api.answers import done
from aiflow.api.context import Server
from aiflow.api.documents import changes
from aiflow.api.models.github import DELIVERY, DeliveryAnswer
from aiflow.usecases.issues.deliveries import take_delivery
from aiflow.wiring.server import webhook_secret

MOST_EVENT = 100

Signature = Annotated[
    str,
    Header(alias="X-Hub-Signature-256", max_length=200, description="HMAC-SHA256 of the body, as `sha256=…`."),
]
Event = Annotated[str, Header(alias="X-GitHub-Event", max_length=MOST_EVENT, description="What happened.")]


async def _raw(http: HttpRequest) -> bytes:
    """Give the body as it was signed."""
    return await http.body()


def routes(server: Server) -> APIRouter:
    """Return the routes for GitHub."""
    router = APIRouter(prefix="/api/github", tags=["github"])
    document = changes(DeliveryAnswer, "SIGNATURE_INVALID", "WEBHOOK_NOT_SET", status=202, is_open=True)
    document["openapi_extra"] |= {"requestBody": DELIVERY}
    document["responses"][202].pop("headers")  # nothing was made

    @router.post("/webhook", **document)
    def webhook(body: Annotated[bytes, Depends(_raw)], signature: Signature = "", event: Event = "") -> Response:
        """Accept a delivery and look at its issue now. Only the issue's number is trusted; polling continues."""
        settings = server.live.settings()
        repo = settings.text("github.repo")
        request_id = take_delivery(webhook_secret(settings), repo, body, signature, server.issues.hint)
        return done({"event": event, "request_id": request_id}, 202)

    return router
