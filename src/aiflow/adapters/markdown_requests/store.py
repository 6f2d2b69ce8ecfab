"""The folder of request files as a request source (REQ-3, REQ-4): load all, edit one, create one."""

from __future__ import annotations

import errno
import os
import stat
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import is_inside, read_regular, translated
from aiflow.adapters.markdown_requests.scan import MAX_FILE_BYTES, invalid, read_request
from aiflow.domain.backlog.folder import SUFFIX, is_request_file
from aiflow.domain.backlog.metadata import meant_key
from aiflow.domain.request import (
    InvalidRequest,
    Problem,
    ProblemKind,
    Request,
    RequestId,
    is_valid_id,
    normalize_id,
)
from aiflow.errors import ConflictError, EnvironmentProblemError, NotFoundError, as_problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from aiflow.domain.backlog.metadata import Change
    from aiflow.domain.request import Value

FOLDER = "requests"
# A link is refused here and looked at closer; a pipe without a writer does not keep us waiting.
_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
# Most files end within the first read; room that is not used costs more than a second one.
_FIRST_BYTES, _MORE_BYTES = 4096, 65536
OTHERS_NAMED = 3


# Gets a file's path below the root, its request, and the keys that changed as (old, new); None if it was made.
Written = Callable[[str, str, "Mapping[str, tuple[Value, Value]] | None"], None]


class MarkdownRequests:
    """Reads and writes the request files of one folder, `requests/*.md` unless the settings name another."""

    def __init__(self, root: Path | str, folder: str = FOLDER, written: Written | None = None) -> None:
        """Read and write below a root; `written` hears of each file that was changed or made, and what was done."""
        self._root = str(root)
        self._written = written
        self._name = folder
        self._folder = f"{root}/{folder}"

    def load(self) -> tuple[list[Request], list[InvalidRequest]]:
        """Read every request file; a broken one is returned separately and stops nothing (REQ-4)."""
        results: list[Request | InvalidRequest] = []
        folder_fd = self._open_folder()
        try:
            for name in os.listdir(folder_fd):
                if not is_request_file(name):
                    continue
                data = read_plain_file(name, folder_fd)
                if data and name.isprintable():
                    results.append(read_request(name[:-3], f"{self._name}/{name}", data))
                else:
                    results.append(self._look_closer(name))
        finally:
            os.close(folder_fd)
        valid = [result for result in results if isinstance(result, Request)]
        broken = [result for result in results if isinstance(result, InvalidRequest)]
        return separate_duplicates(valid, sorted(broken, key=lambda file: file.where))

    def read(self, request_id: RequestId) -> Request | InvalidRequest:
        """Read one request as it is now, without looking at the others."""
        path = self.find(request_id)
        with translated(path):
            return read_request(path.name.removesuffix(SUFFIX), f"{self._name}/{path.name}", read_regular(path))

    def read_text(self, request_id: RequestId) -> str:
        """Return one file's whole text, for showing it."""
        path = self.find(request_id)
        with translated(path):
            return path.read_bytes().decode("utf-8", "replace")

    def body(self, request_id: RequestId) -> str:
        """Return one file's body, without its metadata."""
        from aiflow.adapters.markdown_requests.patch import body_start

        text = self.read_text(request_id)
        return text[body_start(text) :]

    def misspelt_keys(self, request_id: RequestId) -> list[Problem]:
        """Name a file's own keys that were most likely meant as one of ours."""
        return misspelt_in(self.read_text(request_id))

    @staticmethod
    def check_text(text: str, request_id: RequestId | None = None) -> Request | InvalidRequest:
        """Read a text as if it were a request file, a new one or that of an id."""
        name, data = request_id or "new", text.encode("utf-8", "surrogateescape")
        if len(data) > MAX_FILE_BYTES:
            return invalid(name, FOLDER, ProblemKind.TOO_LARGE, limit=str(MAX_FILE_BYTES))
        return read_request(name, f"{FOLDER}/{name}{SUFFIX}", data)

    def whole_text(self, request_id: RequestId) -> str:
        """Return one file's whole text, to be edited as a whole."""
        from aiflow.adapters.markdown_requests.edit import decode

        path = self.find(request_id)
        with translated(path):
            return decode(path.read_bytes(), request_id, f"{self._name}/{path.name}")

    def rewrite(self, request_id: RequestId, before: str, after: str) -> None:
        """Replace the text that a person began with; keys that were changed meanwhile stay as they are now."""
        from pathlib import Path

        from aiflow.adapters.markdown_requests.edit import Rewriting, rewrite_file

        found = self.find(request_id)
        rewriting = Rewriting(request_id, f"{self._name}/{found.name}", before, after)
        rewrite_file(Path(self._root), found.resolve(), rewriting)

    def edit(
        self,
        request_id: RequestId,
        changes: Mapping[str, Change],
        body: tuple[str, str] | None = None,
        before: str | None = None,
    ) -> dict[str, tuple[Value, Value]]:
        """Change keys, and the body if given as (expected, new); return what changed as key -> (old, new)."""
        from pathlib import Path

        from aiflow.adapters.markdown_requests.edit import Edit, edit_file

        found = self.find(request_id)
        path = found.resolve()
        edit = Edit(request_id, changes, body, f"{self._name}/{found.name}", before)
        changed = edit_file(Path(self._root), path, edit)
        if self._written is not None and (changed or body is not None):
            self._written(os.path.relpath(path, os.path.realpath(self._root)), request_id, changed)
        return changed

    def create(self, propose: Callable[[frozenset[str]], RequestId], text: str, values: Mapping[str, Value]) -> str:
        """Create a file under the id that `propose` chooses beside those taken; return its path below the root."""
        from pathlib import Path

        from aiflow.adapters.markdown_requests.edit import create_request_file

        self._make_folder()
        path = create_request_file(Path(self._root), self._name, propose, text, values)
        if self._written is not None:
            self._written(path, os.path.basename(path).removesuffix(SUFFIX), None)
        return path

    def require_free(self, request_id: str | None) -> None:
        """Refuse an id that is taken, and a folder that cannot be used, before anybody writes a text for it."""
        if not os.path.lexists(self._folder):
            return
        os.close(self._open_folder())
        if request_id is not None:
            wanted = normalize_id(request_id).casefold()
            for name in filter(is_request_file, os.listdir(self._folder)):
                existing = normalize_id(name.removesuffix(SUFFIX))
                if existing.casefold() == wanted:
                    path = f"{self._name}/{name}"
                    raise ConflictError(reason_code="REQUEST_EXISTS", request_id=existing, path=path)

    def _make_folder(self) -> None:
        """Make the folder if it is missing; anything else in its place, and a way out of the repository, is refused."""
        if not os.path.lexists(self._folder) and self._is_inside(self._folder):
            with translated(self._folder):
                os.makedirs(self._folder, exist_ok=True)
        os.close(self._open_folder())

    def _open_folder(self) -> int:
        """Open the folder itself, or say what is wrong with it."""
        try:
            is_led = "/" in self._name or os.path.islink(self._folder)
            if is_led and not self._is_inside(self._folder):
                raise EnvironmentProblemError(reason_code="REQUESTS_DIR_MISSING", path=self._folder)
            return os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise EnvironmentProblemError(reason_code="REQUESTS_DIR_MISSING", path=self._folder) from None
        except OSError as error:
            raise as_problem(error, self._folder) from error

    def _look_closer(self, name: str) -> Request | InvalidRequest:
        """Read an entry that is a link, no file, unreadable, too large, empty or badly named, or say which it is."""
        stem, path = name[: -len(SUFFIX)], f"{self._name}/{name}"
        if not name.isprintable():
            return invalid(ascii(stem), ascii(path), ProblemKind.BAD_ID, key="id", value=ascii(stem))
        try:
            kind = self._why_unusable(f"{self._root}/{path}")
            if kind is None:
                return read_request(stem, path, read_regular(f"{self._root}/{path}"))
        except OSError as error:
            return invalid(stem, path, ProblemKind.UNREADABLE, problem=os.strerror(error.errno or errno.EIO))
        return invalid(stem, path, kind, limit=str(MAX_FILE_BYTES))

    def _why_unusable(self, target: str) -> ProblemKind | None:
        """Say why an entry cannot be read as a file of ours, or None if it can."""
        try:
            status = os.stat(target)
        except (FileNotFoundError, NotADirectoryError):
            return ProblemKind.BROKEN_LINK
        if not self._is_inside(target):
            return ProblemKind.LINK_OUTSIDE
        if not stat.S_ISREG(status.st_mode):
            return ProblemKind.NOT_A_FILE
        return ProblemKind.TOO_LARGE if status.st_size > MAX_FILE_BYTES else None

    def _is_inside(self, path: Path | str) -> bool:
        """Return whether a link leads to a file of the user's in this repository."""
        return is_inside(self._root, path)

    def find(self, request_id: RequestId) -> Path:
        """Look an id up among the files that exist; an id is never used as a path unseen (SEC)."""
        os.close(self._open_folder())  # says what is wrong with it, if anything
        from pathlib import Path

        if is_valid_id(request_id):
            path = Path(self._folder, f"{request_id}{SUFFIX}")
            if path.is_file() and self._is_inside(path):
                return path
            for other in Path(self._folder).iterdir():
                is_meant = is_request_file(other.name) and normalize_id(other.stem) == request_id
                if is_meant and other.is_file() and self._is_inside(other):
                    return other
        raise NotFoundError(request_id=request_id)


def id_in(text: str, folder: str = FOLDER) -> RequestId:
    """Take the id out of what was typed: an id, or the path of its file."""
    name = text.rpartition("/")[2] if text.startswith((f"{folder}/", f"./{folder}/")) else text
    return normalize_id(name.removesuffix(SUFFIX))


def misspelt_in(text: str) -> list[Problem]:
    """Name the keys of a text that were most likely meant as one of ours."""
    from aiflow.adapters.markdown_requests.block import read_block

    found = read_block(text).others
    meant = [(name, meant_key(name), line) for name, line in found.items()]
    kind = ProblemKind.MISSPELT_KEY
    return [Problem(kind, line, (("key", name), ("meant", key))) for name, key, line in meant if key]


def read_plain_file(name: str, folder_fd: int) -> bytes | None:
    """Read an entry as the plain file it most often is; None or nothing if it needs a closer look."""
    try:
        fd = os.open(name, _READ_FLAGS, dir_fd=folder_fd)
    except OSError:
        return None
    try:
        data = os.read(fd, _FIRST_BYTES)
        return data if len(data) < _FIRST_BYTES else _read_rest(fd, data)
    except OSError:
        return None
    finally:
        os.close(fd)


def _read_rest(fd: int, data: bytes) -> bytes:
    """Read on to the end of a large file; nothing at all if it is too large."""
    chunks, size = [data], len(data)
    while chunk := os.read(fd, _MORE_BYTES):
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_FILE_BYTES:
            return b""
    return b"".join(chunks)


def separate_duplicates(
    valid: list[Request], broken: list[InvalidRequest]
) -> tuple[list[Request], list[InvalidRequest]]:
    """Exclude every file that shares its id with another: it is unknown which one is meant."""
    ids = {request.id for request in valid}
    ids.update(file.declared_id or file.id for file in broken)
    if len(ids) == len(valid) + len(broken):
        return valid, broken
    claims: defaultdict[str, list[str]] = defaultdict(list)
    for request in valid:
        claims[request.id].append(request.where)
    for file in broken:
        claims[file.declared_id or file.id].append(file.where)
    shared = {request_id: paths for request_id, paths in claims.items() if len(paths) > 1}
    unique = [request for request in valid if request.id not in shared]
    rest = [file for file in broken if (file.declared_id or file.id) not in shared]
    for request_id, paths in shared.items():
        for path in paths:
            others = ", ".join([other for other in paths[: OTHERS_NAMED + 1] if other != path][:OTHERS_NAMED])
            others += f", … ({len(paths) - 1})" if len(paths) > OTHERS_NAMED + 1 else ""
            problem = Problem(ProblemKind.SAME_ID, None, (("others", others),))
            called = normalize_id(path.rpartition("/")[2].removesuffix(SUFFIX))
            rest.append(InvalidRequest(RequestId(request_id), path, (problem,), called=called))
    return unique, sorted(rest, key=lambda file: file.where)
