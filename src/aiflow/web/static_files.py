"""The page's style sheets, scripts and pictures, and the libraries in `vendor/` that npm fetched at set-up."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse, Response

from aiflow.api.context import Server
from aiflow.errors import NotFoundError

_FOLDER = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
HTMX = "vendor/htmx.min.js"


def has_htmx() -> bool:
    """Return whether the page can update itself: without npm at set-up it cannot, and then asks for no script."""
    return (_FOLDER / HTMX).is_file()


def routes(_server: Server) -> APIRouter:
    """Return the static files: those that are there at the start, and nothing that a path leads to."""
    router = APIRouter()
    served = {
        path.relative_to(_FOLDER).as_posix(): path
        for path in _FOLDER.rglob("*")
        if path.suffix in _TYPES and not path.name.startswith(".")
    }

    @router.get("/static/{name:path}")
    def static(name: str) -> Response:
        if name not in served:
            raise NotFoundError(reason_code="ROUTE_NOT_FOUND", path=name, method="GET")
        path = served[name]
        return FileResponse(path, media_type=_TYPES[path.suffix], headers={"Cache-Control": "no-cache"})

    return router
