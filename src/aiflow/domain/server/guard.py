"""Who may call the server (SEC): one decision for every call, deny by default, before any route is looked up.

Host from a list → Origin equal to ours on every call that changes something → content type → who it is. The size of a
body is counted while it is read. No answer depends on what the caller claims about itself, but on these lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
JSON_TYPE, FORM_TYPE = "application/json", "application/x-www-form-urlencoded"
# What anybody who reaches the server may have: the way to sign in, what the pages are drawn with, whether it is up.
OPEN_PATHS = frozenset({"/sign-in", "/api/health", "/favicon.ico", "/favicon.svg"})
OPEN_FOLDERS = ("/static/",)
# The one call that makes a session of a one-time code, as JSON.
SIGN_IN_CALL = ("POST", "/api/sessions")
MAX_BODY_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Addresses:
    """The names under which this server is reached: what Host and Origin may be, whole and in lower case."""

    hosts: frozenset[str]
    origins: frozenset[str]


class Call(NamedTuple):
    """What a caller sent, as far as the decision needs it; a header that is missing is None."""

    method: str
    path: str
    host: str | None
    origin: str | None = None
    content_type: str | None = None
    has_body: bool = False
    has_bearer: bool = False
    is_from_page: bool = False  # a browser says `Sec-Fetch-…` with every call
    repeats: frozenset[str] = frozenset()  # headers that came more than once


def addresses(host: str, port: int, further: tuple[str, ...] = ()) -> Addresses:
    """Return the names of a server that listens on a host and port; `further` are a person's own (`server.hosts`).

    A further name is a host, a host with its port, or an address with its scheme, as behind a proxy that ends TLS.
    """
    hosts, origins = set[str](), set[str]()
    for name in dict.fromkeys((*LOOPBACK_HOSTS, _bracketed(host))):
        hosts.add(f"{name}:{port}")
        origins.add(f"http://{name}:{port}")
        if port == 80:
            hosts.add(name)
            origins.add(f"http://{name}")
    for name in further:
        scheme, netloc = _parts(name.strip().lower().rstrip("/"))
        has_port = urlsplit(f"//{netloc}").port is not None
        names = (netloc,) if has_port or scheme else (netloc, f"{netloc}:{port}")
        hosts.update(names)
        origins.update(f"{each}://{at}" for at in names for each in ((scheme,) if scheme else ("http", "https")))
    return Addresses(frozenset(hosts), frozenset(origins))


def is_loopback(host: str) -> bool:
    """Tell whether an address to listen on is this machine's alone."""
    return host in ("127.0.0.1", "::1", "[::1]", "localhost")


def is_open(method: str, path: str) -> bool:
    """Tell whether a call needs nobody to be signed in."""
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDERS) or (method, path) == SIGN_IN_CALL


def refuse(call: Call, ours: Addresses, *, is_known: bool, is_unguarded: bool = False) -> str | None:
    """Return the reason code for which a call is refused, or None to let it through.

    `is_known` says that it brought the token or a session. `is_unguarded` is a server that asks nobody who they are
    (`auth = "none"`, on loopback alone).
    """
    if call.repeats & {"host"} or call.host is None or call.host.lower() not in ours.hosts:
        return "HOST_REFUSED"
    if not _is_origin_right(call, ours, is_unguarded=is_unguarded):
        return "ORIGIN_REFUSED"
    if not _is_type_right(call):
        return "CONTENT_TYPE_REFUSED"
    if is_known or is_unguarded or is_open(call.method, call.path):
        return None
    return "AUTH_REQUIRED"


def _is_origin_right(call: Call, ours: Addresses, *, is_unguarded: bool) -> bool:
    """Tell whether a call comes from a page of ours, or from no page at all."""
    if "origin" in call.repeats:
        return False
    if call.origin is not None:
        return call.origin.lower() in ours.origins
    if call.method in SAFE_METHODS:
        return True
    # A browser names the page behind every call that changes something: who names none is a program with the token, or,
    # where nobody is asked who they are, at least no browser.
    return not call.is_from_page if is_unguarded else call.has_bearer


def _is_type_right(call: Call) -> bool:
    """Tell whether a body is of the one kind that its route takes; a form that a foreign page posts is never JSON."""
    if "content-type" in call.repeats:
        return False
    if call.method in SAFE_METHODS or not (call.has_body or call.content_type):
        return True
    kind = (call.content_type or "").partition(";")[0].strip().lower()
    return kind == (JSON_TYPE if call.path.startswith("/api/") else FORM_TYPE)


def _bracketed(host: str) -> str:
    """Write an IPv6 address as a URL has it."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _parts(name: str) -> tuple[str, str]:
    scheme, separator, rest = name.partition("://")
    return (scheme, rest) if separator else ("", name)
