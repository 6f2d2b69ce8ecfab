"""A machine in memory: shell commands by script, a person to notify, a place for branches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.domain.programs import End, Ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.notes import Note
    from aiflow.domain.runs.worktree import Place

STATE = "/state"
EAR_SECONDS = 0.25


def _succeed(_command: str, _place: Place, _output: Callable[[bytes], None], _should_stop: Callable[[], bool]) -> Ended:
    """Be a command that has nothing to say and succeeds."""
    return Ended(End.EXITED, 0)


@dataclass
class MemoryWorkshop:
    """The machine a run works on: healthy, with room; `run_shell` plays the commands."""

    run_shell: Callable[[str, Place, Callable[[bytes], None], Callable[[], bool]], Ended] = _succeed
    problem: tuple[str, str] | None = None
    room: tuple[str, int] = (STATE, 10**12)

    def worktree_path(self, run_id: str) -> str:
        """Return where a run's worktree goes."""
        return f"{STATE}/worktrees/{run_id}"

    def copy(self, _paths: tuple[str, ...], _target: str) -> tuple[str, ...]:
        """Copy files of the user's checkout: there are none beside git's."""
        return ()

    def shell(
        self, command: str, place: Place, output: Callable[[bytes], None], should_stop: Callable[[], bool]
    ) -> Ended:
        """Run a test or set-up command in a worktree."""
        return self.run_shell(command, place, output, should_stop)

    def find_program(self, _command: str) -> str | None:
        """Return the program that a shell command starts with if it cannot be found: all can."""
        return None

    def is_repository_root(self) -> bool:
        """Return whether the project is a repository."""
        return True

    def file_system(self) -> str | None:
        """Return the kind of file system if it is a network's: it is not."""
        return None

    def confinement(self) -> str | None:
        """Return what confines agents on this machine."""
        return "memory"

    def unwritable(self) -> tuple[str, str] | None:
        """Return the folder that keeps worktrees from being made and what is the matter with it, else None."""
        return self.problem

    def least_room(self) -> tuple[str, int]:
        """Return where there is least room, and how much."""
        return self.room


@dataclass
class MemoryNotifier:
    """A person who hears of everything."""

    notes: list[Note] = field(default_factory=list)

    def send(self, note: Note, interrupted: Callable[[], bool] = lambda: False) -> str | None:  # noqa: ARG002
        """Send one message."""
        self.notes.append(note)
        return None

    def lack(self) -> str | None:
        """Say what is missing to send by addresses."""
        return None


@dataclass
class MemoryRemote:
    """Where branches are shown to others."""

    pushed: list[str] = field(default_factory=list)

    def push(self, place: Place) -> None:
        """Push a run's branch."""
        self.pushed.append(place.branch)
