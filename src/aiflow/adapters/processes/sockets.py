"""Whose the other end of a connection within this machine is (QUE-2a): a port alone says nothing of who listens there.

Straight from Linux's /proc, and through psutil where there is none.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.processes.machine import PROC

if TYPE_CHECKING:
    from collections.abc import Iterator

_LISTENS = "0A"
_MAPPED = "::ffff:"


class Ends(NamedTuple):
    """What a process has of a connection: its other end, and the listening socket that may still hand that over."""

    has_peer: bool
    is_listening: bool


def ends_of(pid: int, connection: socket.socket) -> Ends:
    """Return what a process has of a connection that we made to a port of this machine (IPv4)."""
    return _by_proc(pid, connection) if sys.platform == "linux" else _by_psutil(pid, connection)


def _by_proc(pid: int, connection: socket.socket) -> Ends:
    (our_host, our_port), (host, port) = connection.getsockname(), connection.getpeername()
    inodes = set(_inodes(pid))
    peers = {(f"{form(host)}:{port:04X}", f"{form(our_host)}:{our_port:04X}") for form in (_as_ipv4, _as_ipv6)}
    has_peer = is_listening = False
    for local, remote, state, inode in _sockets():
        if inode in inodes:
            has_peer |= (local, remote) in peers
            is_listening |= state == _LISTENS and local.endswith(f":{port:04X}")
    return Ends(has_peer, is_listening)


def _by_psutil(pid: int, connection: socket.socket) -> Ends:
    import psutil

    ours, peer = connection.getsockname(), connection.getpeername()
    try:
        found = psutil.Process(pid).net_connections("tcp")
    except (psutil.Error, OSError):  # gone, or not ours to look at
        return Ends(has_peer=False, is_listening=False)
    listening = any(each.status == psutil.CONN_LISTEN and each.laddr.port == peer[1] for each in found)
    has_peer = any(_pair(each.laddr) == peer and _pair(each.raddr) == ours for each in found)
    return Ends(has_peer, listening)


def _pair(address: tuple[str, int] | tuple[()]) -> tuple[str, int] | None:
    return (address[0].removeprefix(_MAPPED), address[1]) if address else None


def _as_ipv4(host: str) -> str:
    return _as_words(socket.inet_aton(host))


def _as_ipv6(host: str) -> str:
    return _as_words(socket.inet_pton(socket.AF_INET6, _MAPPED + host))


def _as_words(address: bytes) -> str:
    """Write an address as the kernel does: in words of four bytes, each as this machine has numbers."""
    return "".join(f"{word:08X}" for (word,) in struct.iter_unpack("=I", address))


def _inodes(pid: int) -> Iterator[str]:
    """Yield the numbers of a process's sockets; none if it is gone or not ours to look at."""
    folder = f"{PROC}/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                target = os.readlink(f"{folder}/{name}")
                if target.startswith("socket:["):
                    yield target[8:-1]


def _sockets() -> Iterator[tuple[str, str, str, str]]:
    """Yield every TCP socket there is: its own address, the other end's, its state and its number."""
    for name in ("tcp6", "tcp"):
        with contextlib.suppress(OSError), open(f"{PROC}/net/{name}", encoding="ascii") as file:
            next(file, None)
            for line in file:
                fields = line.split()
                yield fields[1], fields[2], fields[3], fields[9]
