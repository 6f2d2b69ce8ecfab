"""A command killed behind its writes, one after the other, each time from the same beginning."""

from __future__ import annotations

import random
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from faults.killing import KILLED, Done, Scene
from forms import is_soak

MAX_FAILURES = 5


class Kills(NamedTuple):
    """A command to be killed at its writes: how to get there, and what must hold afterwards.

    Up to the first write that names `known_until`, and from the first that names `known_from` on, another test kills
    behind each; here every fourth is enough. In the normal form one of each kind of write is killed behind, which one is
    left to chance, and of so many kinds at most.
    """

    command: tuple[str, ...]
    prepare: Callable[[Scene], None]
    afterwards: Callable[[Scene], None]
    steps: int = 1
    has_setup: bool = False
    has_baseline: bool = False
    is_on_base: bool = False
    known_until: str = ""
    known_from: str | None = None
    kinds: int = 8

    def left_out(self, writes: list[str]) -> frozenset[int]:
        """Return the writes, counted from 1, that are not killed behind: three of four of those that are as another.

        So is one that makes a temporary file, whose content is the next: nobody reads that file before it has its name.
        """
        until = _first(writes, self.known_until) if self.known_until else 0
        since = len(writes) if self.known_from is None else _first(writes, self.known_from)
        pairs = zip(writes, [*writes[1:], ""], strict=True)
        is_empty = [" open " in one and ".tmp'" in one and " content " in next_one for one, next_one in pairs]
        same = [turn for turn in range(len(writes)) if turn < until or turn >= since or is_empty[turn]]
        return frozenset(turn + 1 for number, turn in enumerate(same, 1) if number % 4)

    def turns(self, writes: list[str], chance: random.Random) -> list[int]:
        """Return the writes, counted from 1, that are killed behind in this form of the tests."""
        left_out = self.left_out(writes)
        turns = [turn for turn in range(1, len(writes) + 1) if turn not in left_out]
        return turns if is_soak() else one_of_each(turns, writes, chance, self.kinds)


def _first(writes: list[str], name: str) -> int:
    """Return where the first write is that names something."""
    return next(turn for turn, write in enumerate(writes) if name in write)


def one_of_each(turns: list[int], writes: list[str], chance: random.Random, most: int) -> list[int]:
    """Return one of each kind of write, drawn by chance; if there are too many kinds, of some of them."""
    kinds: dict[str, list[int]] = {}
    for turn in turns:
        kinds.setdefault(kind_of(writes, turn - 1), []).append(turn)
    drawn = [chance.choice(each) for each in kinds.values()]
    return sorted(chance.sample(drawn, min(most, len(drawn))))


def kind_of(writes: list[str], at: int) -> str:
    """Name what a write does to what: two of a kind leave the same behind, at another time."""
    name, what = writes[at].split(" ", 2)[1:]
    if told := re.search(r'^[^{]*\{"at":.*?"event":"(\w+)"', what) or re.search(
        r'^[^{]*\{"at":.*?"kind":"(\w+)"', what
    ):
        return f"{name} {told[1]}"
    if name in ("__init__", "run"):
        return f"{name} {_program(what)}"
    paths = re.findall(r"'?(/[^']+)'?", what)
    if not paths:  # one of many: the content of something, a file of a folder that goes
        return name
    target = re.sub(r"[0-9a-f]{6,}|[0-9]+", "#", "a temporary file" if ".tmp" in paths[-1] else paths[-1])
    if name == "replace" and target.endswith("/stage.json"):  # a run's truth: each of its moves is a kind of its own
        moves = (found[1] for later in writes[at:] if (found := re.search(r'"event":"(\w+)"', later)))
        target = f"stage.json {next(moves, '')}"
    return f"{name} {target.rpartition('/')[2]}"


def _program(what: str) -> str:
    """Name a program that is started, and what git is told to do."""
    words = iter(re.findall(r"'([^']*)'", what[what.rfind("['") :]))
    if (program := next(words, "").rpartition("/")[2]) != "git":
        return program
    for word in words:
        if word == "-c":
            next(words, "")
        elif not word.startswith("-"):
            return f"git {word}"
    return program


def kill_everywhere(folder: Path, kills: Kills, whole: Callable[[Scene, Done], None], chance: random.Random) -> int:
    """Kill a command behind its writes, each time from the same beginning; return how many writes it makes.

    `whole` checks the same command left alone.
    """
    wants = {name: getattr(kills, name) for name in ("steps", "has_setup", "has_baseline", "is_on_base")}
    scene = Scene(folder, **wants)
    failures: list[str] = []
    try:
        kills.prepare(scene)
        scene.keep()
        done = scene.aiflow(*kills.command)
        whole(scene, done)
        turns = kills.turns(done.writes, chance)
        for turn in turns:
            failures += _kill(scene, kills, turn)
            assert len(failures) < MAX_FAILURES, "\n\n".join(failures)
    finally:
        scene.close()
    print(f"{' '.join(kills.command)}: killed behind {len(turns)} of {len(done.writes)} writes")
    assert not failures, "\n\n".join(failures)
    return len(done.writes)


def _kill(scene: Scene, kills: Kills, turn: int) -> list[str]:
    """Kill the command at one write and see what the next start makes of it; return what is wrong with that."""
    scene.restore()
    done = scene.aiflow(*kills.command, turn=turn)
    if done.code != KILLED and len(done.writes) < turn:  # on a busy machine it may write something once less or more
        scene.restore()
        done = scene.aiflow(*kills.command, turn=len(done.writes))
    try:
        assert done.code == KILLED, f"it ended after {len(done.writes)} writes: {done}"
        for request in scene.requests():
            for run_id in scene.run_ids(request):
                scene.run(run_id, request)
        kills.afterwards(scene)
    except Exception as error:  # noqa: BLE001 - all that failed is told together
        return [f"killed behind {done.writes[-1]}\n{describe(error)}"]
    return []


def describe(error: Exception) -> str:
    """Write an error with where it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " > ".join(f"{frame.name}:{frame.lineno}" for frame in frames)
    return f"{places}\n{type(error).__name__}: {error}"
