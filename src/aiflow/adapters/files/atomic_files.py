"""Writing files so that a kill, a full disk or a second process never leaves half of one (REQ-3, LCK-2)."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from typing import TYPE_CHECKING

from aiflow.errors import as_problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STATE_DIR = ".aiflow"


def state_dir(root: Path, *parts: str) -> Path:
    """Return a folder of the checkout's own state, made if missing and hidden from git; the checkout is never made."""
    base = root / STATE_DIR
    folder = base.joinpath(*parts)
    for each in (base, folder):
        refuse_link(each)
        each.mkdir(parents=each is not base, exist_ok=True)
    ignore = base / ".gitignore"
    if not ignore.exists() or not ignore.stat().st_size:  # empty: the disk was full
        replace_file(ignore, b"*\n", base)
    return folder


def refuse_link(path: Path | str) -> None:
    """Raise an OSError if a link stands where files of our own are: it may lead anywhere."""
    if os.path.islink(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def is_inside(root: Path | str, path: Path | str) -> bool:
    """Return whether a path, links followed, is below a root, and neither git's nor our own."""
    real_root, real = os.path.realpath(root), os.path.realpath(path)
    if os.path.commonpath([real_root, real]) != real_root:
        return False
    first = os.path.relpath(real, real_root).split(os.sep)[0]
    return first not in (".git", STATE_DIR)


def remove_leftovers(scratch: Path, older_than_seconds: float = 3600) -> None:
    """Remove temporary files that a killed process left behind long ago."""
    for path in scratch.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > older_than_seconds:
                path.unlink()


def read_own(path: Path | str, limit: int = 10_000_000) -> bytes:
    """Read a plain file that only aiflow writes; a link in its place is refused as an OSError."""
    return read_regular(path, limit, os.O_NOFOLLOW)


def read_regular(path: Path | str, limit: int = 10_000_000, flags: int = 0) -> bytes:
    """Read a plain file; a pipe, a device or an endless file is refused as an OSError rather than waited for."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
    with os.fdopen(fd, "rb", buffering=0) as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
        data = file.readall() if status.st_size <= limit else None
    if data is None or len(data) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data


@contextlib.contextmanager
def translated(path: Path | str) -> Iterator[None]:
    """Turn the operating system's errors into ours, naming the file."""
    try:
        yield
    except OSError as error:
        raise as_problem(error, error.filename or path) from error


def replace_file(path: Path, data: bytes, scratch: Path, expected: bytes | None = None) -> bool:
    """Put new content in a file's place in one step, on disk before it is seen; keeps the file's mode.

    With `expected`, the file is looked at once more right before, and False returned if it says something else by
    now: an editor that saved meanwhile is not overwritten.
    """
    if data == expected:
        return True
    if path.exists() and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = _write_temporary(path, data, scratch)
    try:
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            temporary.chmod(status.st_mode & 0o7777)
            with contextlib.suppress(PermissionError):
                os.chown(temporary, status.st_uid, status.st_gid)
        if expected is None:
            temporary.replace(path)
        elif not _swap_in(temporary, path, expected, data):
            return False
    except OSError as error:
        if error.errno != errno.EXDEV or scratch == path.parent:
            raise
        return replace_file(path, data, path.parent, expected)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def _swap_in(temporary: Path, path: Path, expected: bytes, data: bytes) -> bool:
    """Put a file in another's place if that still says what is expected; looks before and, where it can, after.

    Between a look and a rename an editor may save. An exchange gives us what was really there: if that is not what
    was expected, the two are exchanged back, and no text is lost.
    """
    if path.read_bytes() != expected:
        return False
    if not _exchange(temporary, path):
        temporary.replace(path)
        return True
    if temporary.read_bytes() == expected:
        return True
    _exchange(temporary, path)
    if temporary.read_bytes() != data:  # saved once more in between: the newest text stays
        _exchange(temporary, path)
    return False


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two files in one step; False where the system cannot."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    at_cwd, exchange = -100, 2
    result: int = libc.renameat2(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), exchange)
    return result == 0


def create_file(path: Path, data: bytes, scratch: Path, mode: int = 0o644) -> bool:
    """Create a file whole, or return False if the name is taken; it is never seen half-written, or more open."""
    temporary = _write_temporary(path, data, scratch, mode)
    try:
        _link(temporary, path, mode)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno != errno.EXDEV or scratch == path.parent:  # a bind mount looks like the same device
            raise
        return create_file(path, data, path.parent, mode)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def _link(temporary: Path, path: Path, mode: int) -> None:
    """Give a complete file its name if that is free, also where the file system has no hard links."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))
        temporary.replace(path)


def _write_temporary(path: Path, data: bytes, scratch: Path, mode: int = 0o644) -> Path:
    """Write and flush a complete temporary file on the same file system as its target."""
    folder = scratch if scratch.stat().st_dev == path.parent.stat().st_dev else path.parent
    temporary = folder / f".{path.name[:100]}.{os.urandom(6).hex()}.tmp"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def sync_folder(folder: Path) -> None:
    """Flush a folder, so that a rename survives a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
