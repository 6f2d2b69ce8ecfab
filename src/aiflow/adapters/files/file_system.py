"""Which kind of file system a folder is on (LCK-9): guards and atomic renames are not sound on a network's."""

from __future__ import annotations

import os
import re

MOUNTS = "/proc/self/mountinfo"
# 9p and virtiofs are not here: a virtual machine (WSL2 too) shows its own host's disk that way.
NETWORK_KINDS = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "ceph", "glusterfs", "lustre", "beegfs",
        "davfs", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.ceph-fuse", "fuse.rclone",
        "fuse.davfs2", "fuse.smbnetfs",
    }
)  # fmt: skip
_OCTAL = re.compile(r"\\([0-7]{3})")


def kind_of(path: str) -> str | None:
    """Return the kind of file system a path is on, or None where the system does not report it."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            mounts = file.read()
    except OSError:
        return None
    return kind_in(mounts, os.path.realpath(path))


def kind_in(mounts: str, path: str) -> str | None:
    """Find an absolute path's file system in the text of a `mountinfo`: the longest mount point, the last one there."""
    found, longest = None, -1
    for line in mounts.split("\n"):
        mounted, separator, rest = line.partition(" - ")
        fields = mounted.split(" ")
        if not separator or len(fields) < 6:
            continue
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])
        if len(point) >= longest and _is_below(path, point):
            found, longest = rest.split(" ")[0], len(point)
    return found


def is_network(kind: str) -> bool:
    """Return whether a kind of file system is a network's."""
    return kind in NETWORK_KINDS


def _is_below(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")
