"""Who may call the server (SEC): one decision for every call, deny by default, before any route is looked up.

Host from a list → a path and a method that a route can have → Origin equal to ours on every call that changes something
→ content type → who the caller is. The size of a body is counted while it is read. A webhook's delivery has a signature
instead of Origin and session. Every answer depends on these lists, never on what the caller claims about itself.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

READING = frozenset({"GET", "HEAD"})
METHODS = READING | {"POST", "PUT", "PATCH", "DELETE"}
JSON_TYPE, FORM_TYPE = "application/json", "application/x-www-form-urlencoded"
# What anybody who reaches the server may read: the sign-in page, styles and scripts of the pages, whether it is up.
OPEN_PATHS = frozenset({"/sign-in", "/api/health", "/favicon.ico", "/favicon.svg"})
OPEN_FOLDERS = ("/static/",)
# The calls that exchange a one-time code for a session: a form, and the same as JSON. Anybody may choose a language.
OPEN_CALLS = frozenset({("POST", "/sign-in"), ("POST", "/api/sessions"), ("POST", "/preferences")})
# GitHub's deliveries: the signature proves the sender, so they need neither an Origin nor a session.
WEBHOOK = ("POST", "/api/github/webhook")
# Paths for programs; everything else is for browsers.
FOR_PROGRAMS = ("/api/", "/metrics", "/openapi")
# Headers that may appear only once: of two, a proxy might trust the first and we the second.
SINGLE_HEADERS = ("host", "origin", "content-type", "content-length", "authorization")
MAX_PATH = 2000
MAX_BODY_BYTES = 1_000_000
# A larger one of a known caller is refused unread, too, but a text that somebody pasted into a form is let come first.
MAX_IGNORED_BYTES = 10_000_000
# The most that is read from a caller who is not known yet.
MAX_OPEN_BODY_BYTES = 16_384
# A delivery about an issue has its body, a comment and the text before an edit, each of at most 65,536 characters and
# six bytes a character if escaped: 1.2 MB. Other deliveries of GitHub have up to 25 MB; the next poll finds what is
# refused here.
MAX_WEBHOOK_BYTES = 2_000_000
# The sender is known only after the last byte, so only this many are read at once.
WEBHOOKS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Addresses:
    """The names under which this server is reached: what Host and Origin may be, whole and in lower case."""

    hosts: frozenset[str]
    origins: frozenset[str]


class Call(NamedTuple):
    """What a caller sent, as far as the decision needs it; a header that is missing is None.

    `raw_path` is the path before it was decoded. `site` and `mode` are what a browser reports about the calling page
    (`Sec-Fetch-Site`, `Sec-Fetch-Mode`); `repeats` are headers that appear more than once.
    """

    method: str
    path: str
    host: str | None
    raw_path: str = ""
    origin: str | None = None
    content_type: str | None = None
    has_body: bool = False
    has_bearer: bool = False
    is_from_browser: bool = False
    site: str | None = None
    mode: str | None = None
    repeats: frozenset[str] = frozenset()


def addresses(host: str, port: int, further: tuple[str, ...] = ()) -> Addresses:
    """Return the names of a server that listens on a host and port; `further` are a person's own (`server.hosts`).

    A further name is a host, a host with its port, or an address with its scheme, as behind a proxy that ends TLS.
    """
    hosts, origins = set[str](), set[str]()
    for name in _own_names(host):
        hosts.add(f"{name}:{port}")
        origins.add(f"http://{name}:{port}")
        if port == 80:
            hosts.add(name)
            origins.add(f"http://{name}")
    for name in further:
        scheme, netloc, has_port = _parts(name)
        names = (netloc,) if has_port or scheme else (netloc, f"{netloc}:{port}")
        hosts.update(names)
        origins.update(f"{each}://{at}" for at in names for each in ((scheme,) if scheme else ("http", "https")))
    return Addresses(frozenset(hosts), frozenset(origins))


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address to listen on."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def near_host(host: str) -> str:
    """Return the name by which this machine reaches a server that listens on a host, even if on all addresses."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host.strip("[]"), _bracketed(host))  # noqa: S104 - compared


def far_address(url: str, hosts: tuple[str, ...], port: int) -> str:
    """Return the address by which other devices reach a server: its first further name (`server.hosts`), if any."""
    if not hosts:
        return url
    scheme, netloc, has_port = _parts(hosts[0])
    return f"{scheme or 'http'}://{netloc}{'' if scheme or has_port else f':{port}'}"


def far_link(link: str, url: str, far_url: str, hosts: tuple[str, ...]) -> str | None:
    """Return a link to a server as other devices know it, by `far_url` or its first further name; None if none does."""
    parts = urlsplit(url)
    far = far_url or far_address(url, hosts, parts.port or 80)
    return None if is_loopback(urlsplit(far).hostname or "") else far.rstrip("/") + link.removeprefix(url)


def beside(host: str, url: str) -> str:
    """Return where a caller who reaches this server as `host` finds another server of this machine, which is at `url`.

    For a phone, 127.0.0.1 is another machine. It may be for `localhost`, too: that can be a forwarded port.
    """
    parts = urlsplit(url)
    is_named = host == "localhost" or not is_loopback(host)
    if not host or not is_named or not is_loopback(parts.hostname or ""):
        return url
    return f"{parts.scheme}://{_bracketed(host)}:{parts.port or 80}"


def is_open(method: str, path: str) -> bool:
    """Return whether a call needs no sign-in."""
    if method in READING:
        return path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)
    return (method, path) in OPEN_CALLS or is_webhook(method, path)


def is_webhook(method: str, path: str) -> bool:
    """Return whether a call is a delivery from GitHub, or claims to be."""
    return (method, path) == WEBHOOK


def is_page(path: str) -> bool:
    """Return whether a path is for browsers, which get errors as pages."""
    return not path.startswith(FOR_PROGRAMS)


def refuse(call: Call, ours: Addresses, *, is_unguarded: bool = False) -> str | None:
    """Return the reason code for which a call is refused to any caller, or None to check who the caller is.

    `is_unguarded` is a server without sign-in (`auth = "none"`, on loopback only).
    """
    if "host" in call.repeats or call.host is None or call.host.lower() not in ours.hosts:
        return "HOST_REFUSED"
    if not is_plain_path(call.path, call.raw_path):
        return "ROUTE_NOT_FOUND"
    if call.method not in METHODS:
        return "METHOD_NOT_ALLOWED"
    if not is_webhook(call.method, call.path) and not _is_origin_right(call, ours, is_unguarded=is_unguarded):
        return "ORIGIN_REFUSED"
    if not _is_type_right(call):
        return "CONTENT_TYPE_REFUSED"
    return "INPUT_INVALID" if call.repeats else None


def is_plain_path(path: str, raw_path: str = "") -> bool:
    """Return whether a path is unambiguous: no dots that lead up, no encoded slash, no whole address."""
    if not path.startswith("/") or len(path) > MAX_PATH or len(raw_path) > 3 * MAX_PATH:
        return False
    if "\\" in path or not path.isprintable() or any(each in raw_path.lower() for each in ("%2f", "%5c")):
        return False
    inner = path[1:].removesuffix("/").split("/")
    return path == "/" or not any(part in ("", ".", "..") for part in inner)


def _is_origin_right(call: Call, ours: Addresses, *, is_unguarded: bool) -> bool:
    """Return whether a call comes from one of our pages, or from no page at all."""
    if "origin" in call.repeats:
        return False
    if call.origin is not None:
        return call.origin.lower() in ours.origins
    if call.method in READING:
        # A person who follows a link from another page may read; another page's script may not.
        return call.site in (None, "same-origin", "none") or call.mode == "navigate"
    # A browser names the calling page on every call that changes something. A call without one is from a program with
    # the token, or, on a server without sign-in, at least not from a browser.
    return not call.is_from_browser if is_unguarded else call.has_bearer


def _is_type_right(call: Call) -> bool:
    """Return whether a body has the one type that its route accepts; a form that a foreign page posts is never JSON."""
    if "content-type" in call.repeats:
        return False
    if call.method in READING or not (call.has_body or call.content_type):
        return True
    kind = (call.content_type or "").partition(";")[0].strip().lower()
    return kind == (JSON_TYPE if call.path.startswith("/api/") else FORM_TYPE)


def _own_names(host: str) -> tuple[str, ...]:
    """Return the names of an address to listen on, without loopback names that another program may use."""
    name = _bracketed(host.lower())
    if name == "localhost" or name in ("0.0.0.0", "[::]"):  # noqa: S104 - compared, not listened on
        return (name, "localhost", "127.0.0.1", "[::1]")
    return (name, "localhost") if is_loopback(host) else (name,)


def _parts(name: str) -> tuple[str, str, bool]:
    """Take a further name apart: its scheme if it has one, its host as a URL has it, and whether that names a port."""
    scheme, _, rest = name.strip().lower().rstrip("/").rpartition("://")
    netloc = _bracketed(rest)
    return scheme, netloc, netloc.rpartition(":")[2].isdecimal()


def _bracketed(host: str) -> str:
    """Write an IPv6 address as a URL has it."""
    return f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host
