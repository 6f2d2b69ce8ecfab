"""Starting git (GIT-1): one way to call it, deaf to the caller's environment and to settings that break parsing."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from aiflow.adapters.files.atomic_files import translated
from aiflow.adapters.git.git_files import common_dir
from aiflow.domain.programs import GIT_MARK
from aiflow.errors import AiflowError, EnvironmentProblemError, as_problem
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIMIT_SECONDS = 600.0
_KEPT_PREFIXES = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_SSH")
_KEPT = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})
_SET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
# A program that answers every question with no.
_NO = "false"
_NOBODY_ANSWERS = {"GIT_ASKPASS": _NO, "SSH_ASKPASS": _NO, "SSH_ASKPASS_REQUIRE": "force", "GCM_INTERACTIVE": "never"}
# A user's settings that would change what git prints, start another program, or refuse what a step wrote.
_CONFIG = (
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.safecrlf=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "color.ui=false",
    "diff.orderFile=/dev/null",
    "submodule.recurse=false",
    "i18n.commitEncoding=UTF-8",
    "advice.addEmbeddedRepo=false",
)
# What git says (in English: LC_ALL=C), and what we call it.
_SAYINGS = (
    (b"not a git repository", "NOT_A_REPOSITORY"),
    (b"must be run in a work tree", "NOT_A_REPOSITORY"),
    (b"Please tell me who you are", "GIT_IDENTITY_MISSING"),
    (b"empty ident name", "GIT_IDENTITY_MISSING"),
    (b"consists only of disallowed characters", "GIT_IDENTITY_MISSING"),
    (b"No space left on device", "DISK_FULL"),
    (b"Disk quota exceeded", "DISK_FULL"),
)


@dataclass(frozen=True, slots=True)
class Done:
    """What a call of git gave."""

    code: int
    out: bytes
    err: bytes

    @property
    def word(self) -> str:
        """The output as one word, such as an id."""
        return os.fsdecode(self.out.strip())

    @property
    def items(self) -> list[bytes]:
        """The output as NUL-terminated items."""
        return self.out.split(b"\0")[:-1]


@dataclass(frozen=True, slots=True)
class Git:
    """Git as it is called in one place: the user's repository, or (`inside`) a run's worktree."""

    cwd: str
    run_id: str | None = None
    hooks: bool = False
    sign: bool = False
    where: tuple[str, ...] = ()

    def inside(self, git_dir: str, path: str) -> Git:
        """Bind to a worktree by name: if its `.git` is lost, git must not find a repository further up instead."""
        return replace(self, cwd=path, where=(f"--git-dir={git_dir}", f"--work-tree={path}"))

    def common_dir(self) -> str:
        """Return the folder of the repository that all its worktrees share; its files mostly say it without git."""
        asked = ("rev-parse", "--path-format=absolute", "--git-common-dir")
        return common_dir(self.cwd) or self.run(*asked).word

    def run_alone(self, *args: str, seconds: float) -> Done:
        """Call git where it may want to ask something (a password, whether a host is known): it gets no answer.

        It has no terminal to ask in, a program that asks in a window gets a no, and what still waits is ended later,
        with all that it started. Credential helpers and ssh's agent answer as ever.
        """
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        argv, env = ["git", *self.where, *self._options(), *args], _environment(self.run_id) | _NOBODY_ANSWERS
        try:
            started = subprocess.Popen(argv, cwd=self.cwd, env=env, start_new_session=True, **pipes)
        except OSError as error:
            raise self._not_started(error) from error
        with started:
            try:
                out, err = started.communicate(timeout=seconds)
            except subprocess.TimeoutExpired as error:
                raise _failed(args, words("git.no_end", seconds=f"{seconds:.0f}")) from error
            finally:
                if started.poll() is None:
                    os.killpg(started.pid, signal.SIGKILL)
        done = Done(started.returncode, out, err)
        if done.code:
            raise self.problem(args, done)
        return done

    def run(
        self, *args: str, stdin: bytes = b"", ok: tuple[int, ...] = (0,), environ: Mapping[str, str] | None = None
    ) -> Done:
        """Call git and wait for it; an exit code that is not `ok` is an error."""
        # Ctrl-C in the terminal is ours to judge, git may finish; but who signs may be asked something there.
        group = None if self.sign else 0
        given: dict[str, Any] = {"input": stdin} if stdin else {"stdin": subprocess.DEVNULL}
        env = _environment(self.run_id) | dict(environ or {})
        try:
            done = self._call(args, env, **given, capture_output=True, timeout=_LIMIT_SECONDS, process_group=group)
        except subprocess.TimeoutExpired as error:
            raise _failed(args, words("git.no_end", seconds=f"{_LIMIT_SECONDS:.0f}")) from error
        answer = Done(done.returncode, done.stdout, done.stderr)
        if answer.code not in ok:
            raise self.problem(args, answer)
        return answer

    def run_to_the_end(self, *args: str, environ: Mapping[str, str], held: int) -> Done:
        """Call git for what must not stop half way: nothing ends it, and if we are killed it continues without us.

        It has no mark, no time limit, no terminal and no pipe that could break. As long as it runs it keeps a file
        open, and with that a lock of ours on it.
        """
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        with translated(tempfile.gettempdir()), tempfile.TemporaryFile() as said:
            env = _environment(None) | dict(environ)
            done = self._call(args, env, **streams, stderr=said, start_new_session=True, pass_fds=(held,))
            said.seek(0)
            return Done(done.returncode, b"", said.read())

    def _call(self, args: tuple[str, ...], env: dict[str, str], **how: Any) -> subprocess.CompletedProcess[bytes]:
        argv = ["git", *self.where, *self._options(), *args]
        try:
            return subprocess.run(argv, cwd=self.cwd, env=env, check=False, **how)
        except OSError as error:
            raise self._not_started(error) from error

    def _not_started(self, error: OSError) -> AiflowError:
        if isinstance(error, FileNotFoundError):
            is_there = os.path.isdir(self.cwd)
            return EnvironmentProblemError(reason_code="GIT_NOT_FOUND") if is_there else as_problem(error, self.cwd)
        return as_problem(error, error.filename or self.cwd)

    def problem(self, args: tuple[str, ...], done: Done) -> AiflowError:
        """Name what git refused with a reason code."""
        said = os.fsdecode(b"\n".join(line for line in done.err.splitlines() if not line.startswith(b'{"event"')))
        text = (said.strip() or os.fsdecode(done.out).strip())[-500:] or words("git.exit_code", code=done.code)
        for saying, code in _SAYINGS:
            if saying in done.err:
                return EnvironmentProblemError(reason_code=code, path=self.cwd, problem=text)
        return _failed(args, text)

    def _options(self) -> list[str]:
        """Return the options of every call."""
        settings = [*_CONFIG, f"commit.gpgSign={'true' if self.sign else 'false'}"]
        if not self.hooks:
            settings.append(f"core.hooksPath={os.devnull}")
        return [word for setting in settings for word in ("-c", setting)]


def _failed(args: tuple[str, ...], problem: str) -> EnvironmentProblemError:
    command = " ".join(("git", *args))[:200]
    return EnvironmentProblemError(reason_code="GIT_FAILED", command=command, problem=problem)


def _environment(run_id: str | None) -> dict[str, str]:
    """Return the caller's environment without what would lead git elsewhere."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    # An entry that begins at the current folder would find a program of the worktree's, which an agent may write.
    path = os.pathsep.join(filter(os.path.isabs, kept.get("PATH", os.defpath).split(os.pathsep)))
    return kept | _SET | {"PATH": path} | ({GIT_MARK: run_id} if run_id else {})
