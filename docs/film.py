"""The README's animated picture: a real `aiflow demo` in a terminal, recorded and drawn as one SVG (`make pictures`).

Nothing is staged: the program runs at a pseudo terminal, and what it writes is played back at its own pace, without
pauses longer than `LONGEST_SECONDS`, and up to what to try next, which is for those who ran it.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len

from aiflow.messages import Texts

COMMAND = "aiflow demo try-it"
COLUMNS, ROWS = 92, 31
CELL, LINE, FONT = 8.4, 18, 14
LONGEST_SECONDS, SHORTEST_SECONDS, LAST_SECONDS = 0.4, 0.1, 6.0
CONTROL = re.compile(r"\x1b\[\??([0-9;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")
# A running clock alone is no news: such a frame is left out.
CLOCK = re.compile(r"\b\d\d:\d\d\b(?!:)")
CLASSES = {"1": "b", "90": "g", "32": "ok", "33": "warn", "36": "now", "31": "bad"}
STYLE = f"""
text {{ font: {FONT}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans Mono CJK JP",
monospace; fill: #d7dde4; white-space: pre; }}
.b {{ font-weight: 700; }} .g {{ fill: #8b96a3; }} .ok {{ fill: #5ec27a; }} .warn {{ fill: #e3b341; }}
.now {{ fill: #56c8d8; }} .bad {{ fill: #ff7b72; }}
"""


class Piece(NamedTuple):
    """Text of one look, and the cell that it begins at."""

    column: int
    text: str
    look: str


Line = tuple[Piece, ...]
Screen = tuple[Line, ...]


class Written(NamedTuple):
    """What the program wrote, and when."""

    seconds: float
    text: str


class Frame(NamedTuple):
    """A screen, and for how long it is seen."""

    screen: Screen
    seconds: float


@dataclass
class Terminal:
    """Enough of a terminal for what aiflow writes: lines, colours, going up and clearing a line."""

    lines: list[list[Piece]] = field(default_factory=lambda: [[]])
    row: int = 0
    column: int = 0
    top: int = 0
    look: str = ""

    def take(self, text: str) -> None:
        """Take what was written."""
        for argument, letter, move, words in CONTROL.findall(text):
            if words:
                self.lines[self.row].append(Piece(self.column, words, self.look))
                self.column += cell_len(words)
            elif move:
                self._move(move)
            else:
                self._obey(letter, argument)

    def _move(self, to: str) -> None:
        self.column = 0
        if to == "\n":
            self.row += 1
            self.lines += [[] for _ in range(self.row + 1 - len(self.lines))]
            self.top = max(self.top, self.row - ROWS + 1)

    def _obey(self, letter: str, argument: str) -> None:
        if letter == "A":
            self.row = max(self.top, self.row - int(argument or 1))
        elif letter == "K":
            self.lines[self.row].clear()
        elif letter == "m":
            self.look = " ".join(CLASSES[code] for code in argument.split(";") if code in CLASSES)
        elif letter not in "hl":  # the cursor, which is not drawn
            raise ValueError(f"nobody has taught this terminal ESC [ {argument} {letter}")

    def screen(self) -> Screen:
        """Return what is to be seen now."""
        return tuple(map(tuple, self.lines[self.top : self.top + ROWS]))


def words_of(line: Line) -> str:
    """Return a line without its colours."""
    words = ""
    for piece in line:
        words += " " * (piece.column - cell_len(words)) + piece.text
    return words.rstrip()


def record(language: str, folder: Path) -> list[Written]:
    """Run the demo at a pseudo terminal, and return what it wrote."""
    environ = {name: os.environ[name] for name in ("PATH", "AIFLOW_DEMO_SECONDS") if name in os.environ}
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
    environ |= {"HOME": str(folder), "TERM": "xterm-256color", "LANG": "C.UTF-8", "AIFLOW_LANG": language}
    environ |= {"GIT_CONFIG_NOSYSTEM": "1", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    program, terminal = pty.fork()
    if not program:
        os.chdir(folder)
        os.execvpe("aiflow", COMMAND.split(), environ)  # noqa: S606
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    written = list(_read(terminal, str(folder)))
    os.close(terminal)
    _, status = os.waitpid(program, 0)
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError("".join(each.text for each in written))
    return written


def _read(terminal: int, folder: str) -> Iterator[Written]:
    """Yield what is written, with the reader's home in the place of ours."""
    begun = time.monotonic()
    while True:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # how Linux says that the program has ended
            return
        if not data:
            return
        yield Written(time.monotonic() - begun, data.decode(errors="replace").replace(folder, "~"))


def frames(written: Sequence[Written], texts: Texts) -> list[Frame]:
    """Cut what was written into the screens that are worth seeing."""
    terminal = Terminal()
    terminal.take(f"\x1b[90m$ \x1b[0m\x1b[1m{COMMAND}\x1b[0m\r\n")
    shown = [(0.0, terminal.screen())]
    for seconds, text in until_the_end(written, texts):
        terminal.take(text)
        screen = terminal.screen()
        if _news(screen) != _news(shown[-1][1]):
            shown.append((seconds, screen))
    lengths = [after[0] - before[0] for before, after in pairwise(shown)]
    lasting = [min(max(length, SHORTEST_SECONDS), LONGEST_SECONDS) for length in lengths]
    return [Frame(screen, length) for (_, screen), length in zip(shown, [*lasting, LAST_SECONDS], strict=True)]


def until_the_end(written: Iterable[Written], texts: Texts) -> Iterator[Written]:
    """Leave out what to try next, wherever in what was read at once it begins."""
    end = f"\x1b[1m{texts('demo.next')}"
    for seconds, text in written:
        before, found, _ = text.partition(end)
        yield Written(seconds, before)
        if found:
            return


def _news(screen: Screen) -> list[str]:
    words = [CLOCK.sub("", words_of(line)) for line in screen]
    while words and not words[-1]:
        words.pop()
    return words


def draw(film: Sequence[Frame], title: str) -> str:
    """Draw the frames below each other, each line once, and let a window pass over them."""
    width, height = round(COLUMNS * CELL) + 32, ROWS * LINE + 48
    names: dict[Line, str] = {}
    scenes = "".join(_scene(frame.screen, index * height, names) for index, frame in enumerate(film))
    lines = "".join(f'<g id="{name}">{_line(line)}</g>\n' for line, name in names.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img"><title>{escape(title)}</title>\n<style>{STYLE}{_motion(film, height)}</style>\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#15191e"/>\n<defs>\n{lines}</defs>\n'
        f'<g class="film">\n{scenes}</g>\n</svg>\n'
    )


def _motion(film: Sequence[Frame], height: int) -> str:
    """Say when each frame is seen; who wants no motion sees the last."""
    total = sum(frame.seconds for frame in film)
    steps, passed = [], 0.0
    for index, frame in enumerate(film):
        steps.append(f"{passed / total:.3%}{{transform:translateY(-{index * height}px)}}")
        passed += frame.seconds
    end = f"transform: translateY(-{(len(film) - 1) * height}px);"
    return (
        f"@keyframes film {{{''.join(steps)}100%{{{end}}}}}\n"
        f".film {{ animation: film {total:.1f}s step-end infinite; }}\n"
        f"@media (prefers-reduced-motion: reduce) {{ .film {{ animation: none; {end} }} }}\n"
    )


def _scene(screen: Screen, top: int, names: dict[Line, str]) -> str:
    used = []
    for row, line in enumerate(screen):
        if line:
            name = names.setdefault(line, f"l{len(names)}")
            used.append(f'<use href="#{name}" y="{top + 36 + row * LINE}"/>')
    return f"<g>{''.join(used)}</g>\n"


def _line(line: Line) -> str:
    """Draw a line; every piece is as wide as its cells, whatever font the reader has."""
    drawn = []
    for column, text, look in line:
        words = text.strip()
        if words:
            kind = f' class="{look}"' if look else ""
            begin = column + len(text) - len(text.lstrip())
            place = f'x="{16 + begin * CELL:.1f}" textLength="{cell_len(words) * CELL:.1f}"'
            drawn.append(f"<text{kind} {place}>{escape(words)}</text>")
    return "".join(drawn)


def main(args: Iterable[str]) -> int:
    """Write `demo.en.svg` and `demo.ja.svg` into a folder."""
    (folder,) = map(Path, args)
    for language in ("en", "ja"):
        texts = Texts(language)
        with tempfile.TemporaryDirectory() as home:
            film = frames(record(language, Path(home)), texts)
        (folder / f"demo.{language}.svg").write_text(draw(film, COMMAND), encoding="utf-8", newline="\n")
        print(folder / f"demo.{language}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
