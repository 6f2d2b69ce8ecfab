"""Where a run works (GIT-1): its own worktree and branch, and what git knows about them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A run's worktree; `copied` are the paths put there for the tools that never belong into a commit (GIT-4)."""

    run_id: str
    path: str
    branch: str
    base_branch: str
    base_commit: str
    copied: tuple[str, ...] = ()


# Fills a worktree's submodules, which git leaves empty there.
FILL_SUBMODULES = "git submodule update --init --recursive"
# What no run may change or bring (REQ-8): changes below these folders are put back.
OWN_FOLDERS = ("runs", ".aiflow")
_IN_ANY_CASE = (".aiflow", ".git")


def refused_folders(requests_dir: str) -> tuple[str, ...]:
    """Return the folders below which no run may change anything (REQ-8)."""
    return (requests_dir, *OWN_FOLDERS)


def is_refused(path: str, folders: tuple[str, ...], *, ignores_case: bool = False) -> bool:
    """Return whether a path, as git writes it, is in one of these folders, or where aiflow or git keep their own."""
    return refused_top(path, folders, ignores_case=ignores_case) is not None


def refused_top(path: str, folders: tuple[str, ...], *, ignores_case: bool = False) -> str | None:
    """Return the refused folder that a path is in, spelt as the path spells it; None if it is in none.

    Where the file system ignores case (`ignores_case`), another spelling is the same folder. Of what must
    not come to any machine at all no spelling is taken.
    """
    for folder in (*folders, *_IN_ANY_CASE):
        top = "/".join(path.split("/")[: folder.count("/") + 1])
        is_loose = ignores_case or folder in _IN_ANY_CASE
        if top == folder or (is_loose and top.casefold() == folder.casefold()):
            return top
    return None


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the steps of a run keep to: the folder of the requests is not theirs, no file is larger (0: any size)."""

    requests_dir: str = "requests"
    most_bytes: int = 0


FREE = Bounds()


@dataclass(frozen=True, slots=True)
class FileChange:
    """One changed file of a step; a binary file has no lines."""

    path: str
    added: int
    deleted: int


@dataclass(frozen=True, slots=True)
class LargeFile:
    """A file that is too large for a commit (`limits.file_mb`), and its size in bytes."""

    path: str
    size: int


MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Changes:
    """What a step changed since the commit before it, and what had to be put right on the way.

    `undone` are refused paths that were put back (REQ-8); `notes` says in English what else was found: own commits
    folded in, a branch switched back. `submodules` were moved, removed, or changed inside. `large` were not collected.
    """

    files: tuple[FileChange, ...] = ()
    undone: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    submodules: tuple[str, ...] = ()
    large: tuple[LargeFile, ...] = ()

    @property
    def lines(self) -> int:
        """Lines added and deleted together."""
        return sum(file.added + file.deleted for file in self.files)

    @property
    def areas(self) -> frozenset[str]:
        """The top-level folders that were touched; files at the root count as one separate area."""
        return frozenset(file.path.split("/", 1)[0] if "/" in file.path else "" for file in self.files)


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How one file differs between two commits; a binary file has no lines, a moved one an old path."""

    path: str
    added: int = 0
    deleted: int = 0
    is_binary: bool = False
    old_path: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two commits differ: file by file, and as a unified diff."""

    files: tuple[FileDiff, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class RunDiff:
    """How a run's work, or that of one step, differs from what it began with.

    `unfinished` is the step whose kept work is in it though no commit of the run has it, `unfinished_paths` what that
    touched. `is_gone` says that git has these commits no more, `is_cut` that the text was too long to be given whole.
    """

    request_id: str
    run_id: str
    step_id: str | None
    old: str
    new: str
    files: tuple[FileDiff, ...] = ()
    text: str = ""
    unfinished: str | None = None
    unfinished_paths: frozenset[str] = frozenset()
    is_gone: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What an unfinished step left behind: its tree, the commit that keeps it reachable, and the same as a patch.

    `left_out` are files too large to be kept, which are nowhere but in the worktree.
    """

    tree: str
    commit: str
    patch: bytes
    left_out: tuple[LargeFile, ...] = ()


@dataclass(frozen=True, slots=True)
class RepositoryFacts:
    """What the doctor and a start need to know of the user's repository; looking changes nothing."""

    head_branch: str | None = None
    head_commit: str | None = None
    base_branch: str = ""
    base_commit: str | None = None
    changed_paths: tuple[str, ...] = ()
    identity: str | None = None
    origin_url: str | None = None
    has_submodules: bool = False
    uses_lfs: bool = False
    is_name_taken: bool = False


def branch_name(request_id: str, run_id: str) -> str:
    """Name a run's branch (GIT-1)."""
    return f"aiflow/{request_id}/{run_id}"


def wip_ref(run_id: str, step_id: str) -> str:
    """Name the ref that keeps what an unfinished step left (RUN-7)."""
    return f"refs/aiflow/wip/{run_id}/{step_id}"


def retry_ref(run_id: str, step_id: str, number: int) -> str:
    """Name the ref that keeps what was there before a step was done again (RUN-6)."""
    return f"refs/aiflow/retried/{run_id}/{step_id}-{number}"


def compare_url(origin_url: str | None, base_branch: str, branch: str, api_url: str = "") -> str | None:
    """Derive the page that compares the run's branch with its base, for GitHub origins by ssh or https (GIT-2).

    Where GitHub's API has an address of its own (`github.api_url`), its host is a GitHub, whatever it is called.
    """
    import re
    from urllib.parse import quote, urlsplit

    # The user and password end at the last @ and are dropped. A name without a dot is an alias of ssh's own.
    pattern = (
        r"(?:(?P<scheme>https?|ssh|git|git\+ssh|ssh\+git)://)?(?:[^/]*@)?(?P<host>[a-z0-9-]+(?:\.[a-z0-9-]+)+)"
        r"(?(scheme)(?P<port>:\d+)?/+|:/*)(?P<owner>[a-z0-9_-]+)/+(?P<name>[a-z0-9._-]+?)(?:\.git)?/*"
    )
    match = re.fullmatch(pattern, (origin_url or "").strip(), re.IGNORECASE)
    if match is None or match["name"] in (".", ".."):
        return None
    host, scheme = match["host"].lower().removeprefix("ssh."), (match["scheme"] or "").lower()
    api = urlsplit(api_url)
    is_known = host == (api.hostname or "").removeprefix("api.")
    if not is_known and not _is_github(host) and not host.endswith(".ghe.com"):
        return None
    site = f"https://{host}"
    if scheme.startswith("http") and match["port"]:
        site = f"{scheme}://{host}{match['port']}"
    elif is_known and not scheme.startswith("http") and not (api.hostname or "").startswith("api."):
        site = f"{api.scheme}://{api.netloc}"  # by ssh nothing says at which port its pages are
    base = f"{quote(base_branch)}..." if base_branch else ""
    return f"{site}/{match['owner']}/{match['name']}/compare/{base}{quote(branch)}"


def _is_github(host: str) -> bool:
    """Recognize a GitHub host, the public one or a company's own, by its name."""
    return "github" in host.lower().split(".")
