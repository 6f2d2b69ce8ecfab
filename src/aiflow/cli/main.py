"""The program (CLI): its commands, its global options, and what becomes of an error.

Nothing heavy is imported before it is needed (PRF-6): a command's module only when that command runs, and `--help`
draws the list of commands from the texts alone.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from aiflow import __version__
from aiflow.cli.language import find_language
from aiflow.cli.session import CliSession, current_texts, use_texts
from aiflow.cli.words import WordedGroup, WordedOption, translate_click
from aiflow.errors import AiflowError
from aiflow.messages import Texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiflow.ports import RequestSource

# Every command, in the groups in which `aiflow --help` shows them and in the order a newcomer needs them.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "start": ("demo", "init", "doctor", "agents"),
    "backlog": ("new", "edit", "set", "list", "show", "next", "why", "forecast"),
    "run": ("run", "auto", "stop", "cancel", "up", "open"),
    "stopped": ("resume", "retry-step", "replan", "accept", "send-back", "undo"),
    "look": ("status", "runs", "logs", "report", "diff", "shell", "activity"),
    "queue": ("queue", "runner", "issues"),
    "maintenance": ("settings", "clean", "locks", "service", "sessions", "completion"),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)

# What people type as well: the words that take its place, and those that come at the end.
ALIASES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "ready": (("set",), ("status=ready",)),
    "update": (("resume", "--update"), ()),
    "reject": (("send-back",), ()),
    "config": (("settings",), ()),
    "runners": (("queue", "runners"), ()),
    "namespaces": (("queue", "namespaces"), ()),
    "store": (("queue", "store"), ()),
}

# Commands of the specification that come with later versions: typing one says so.
LATER_COMMANDS = frozenset(
    [
        "mcp",
    ]
)


class LazyGroup(WordedGroup):
    """Imports a command's module when the command is called for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"aiflow.cli.commands.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or say which one may have been meant."""
        name = args[0]
        if name in ALIASES:
            first, last = ALIASES[name]
            is_whole = not ctx.resilient_parsing  # while a shell completes, more is typed
            args = [*first, *args[1:], *(last if is_whole else ())]
        elif name not in COMMANDS and not name.startswith("-"):
            import difflib

            close = difflib.get_close_matches(name, (*COMMANDS, *ALIASES), n=1)
            key = "cli.later_command" if name in LATER_COMMANDS else "cli.no_such_command"
            texts = current_texts()
            text = texts(key, name=name, version=__version__)
            hint = texts("cli.did_you_mean", name=close[0]) if close and name not in LATER_COMMANDS else ""
            if texts.has(f"cli.later_command.{name}"):
                hint = texts(f"cli.later_command.{name}")
            raise click.UsageError(texts.sentences(text, hint), ctx)
        return super().resolve_command(ctx, args)

    def meanings(self) -> Mapping[str, str]:
        """Return what each command does, by its name."""
        return {name: current_texts()(f"cli.{name}.short") for name in COMMANDS}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        texts = current_texts()
        width = max(map(len, COMMANDS))
        for group, names in GROUPS.items():
            with formatter.section(texts(f"cli.group.{group}")):
                formatter.write_dl([(name.ljust(width), texts(f"cli.{name}.short")) for name in names])


@click.group(cls=LazyGroup, name="aiflow", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--lang", cls=WordedOption, type=click.Choice(["ja", "en"]), help="option.lang")
@click.option("-C", "--project", cls=WordedOption, metavar="DIR", help="option.project")
@click.option("--json", "as_json", cls=WordedOption, is_flag=True, help="option.json")
@click.option("-c", "settings", cls=WordedOption, multiple=True, metavar="KEY=VALUE", help="option.setting")
@click.version_option(
    message=f"aiflow, version {__version__}", version=__version__, cls=WordedOption, help="option.version"
)
@click.pass_context
def cli(ctx: click.Context, /, project: str | None, settings: tuple[str, ...], **_given: object) -> None:
    """cli."""  # noqa: D403
    ctx.obj = CliSession(project or ".", settings, current_texts(), ctx.obj or ())


def main(args: list[str] | None = None) -> NoReturn:
    """Run the program and leave with an exit code of SPEC §13."""
    argv = sys.argv[1:] if args is None else args
    _require_utf8(argv)
    _open_missing_streams()
    language = find_language(argv)
    use_texts(Texts(language))
    translate_click(language)
    leave(run(argv))


def leave(code: int) -> NoReturn:
    """End the process at once: taking a large backlog apart object by object takes longer than reading it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(argv: list[str], more_sources: Sequence[RequestSource] = ()) -> int:
    """Run one command line and return its exit code; requests come from files, and from `more_sources`."""
    is_json = "--json" in argv
    try:
        _heed_ctrl_c()
        _require_platform()
        left = cli.main(argv, prog_name="aiflow", standalone_mode=False, obj=more_sources)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as asked:
        click.echo(asked.format_message())
        return 0
    except (click.Abort, KeyboardInterrupt):
        click.echo(current_texts()("cli.aborted"), err=True)
        return 130
    except BrokenPipeError:
        # The reader has left, as `| head` does: nothing is wrong. Python must not try to flush again at its end.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - the outermost loop: everything gets a reason code
        return _report(error, is_json=is_json)
    return left if isinstance(left, int) else 0  # click hands the code of an Exit over as the command's value


def _heed_ctrl_c() -> None:
    """Let Ctrl-C be an exception from here on; `entry.py` had it end the process."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _report(error: Exception, *, is_json: bool) -> int:
    """Show an error; a closed output does not change the exit code."""
    from aiflow.cli.failure import code_of, report

    try:
        report(error, is_json=is_json)
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code_of(error)


def _require_utf8(argv: list[str]) -> None:
    """Restart in UTF-8 if the locale says otherwise: file names and answers are the same on every machine."""
    if sys.getfilesystemencoding().lower() != "utf-8" and not sys.flags.utf8_mode:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", "-m", "aiflow", *argv])  # noqa: S606


def _open_missing_streams() -> None:
    """Give the process the streams that its caller closed, and let no character stop the output."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the whole process
        elif mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _require_platform() -> None:
    if sys.platform == "win32":
        raise AiflowError(reason_code="PLATFORM_UNSUPPORTED")
