"""The options and arguments that commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aiflow.cli.session import CliSession, current_texts, repeat_settings, session_of
from aiflow.cli.words import EverywhereOption, WordedCommand, WordedGroup, WordedOption
from aiflow.domain.request import Priority, RequestId, RequestStatus
from aiflow.errors import NotFoundError
from aiflow.settings.table import STANDS_FOR

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from click.shell_completion import CompletionItem

STATUS_CHOICE = click.Choice([status.value for status in RequestStatus])
PRIORITY_CHOICE = click.Choice([priority.value for priority in Priority])

# A shell that completes the id of a run offers so many.
COMPLETED_RUNS = 100

# Commands whose `-c` is repeated in the next step that they recommend.
LET_WORK = frozenset({"run", "resume", "retry-step", "replan", "auto"})

F = TypeVar("F", bound=Callable[..., Any])


def command(name: str, *, is_lenient: bool = False, below: str | None = None) -> Callable[[F], click.Command]:
    """Make a command with the options that every command has; its words are the texts `cli.<name>…`.

    A lenient one works with the default settings where the file has a mistake. One below a group has the words
    `cli.<group>.<name>…`.
    """

    def decorate(function: F) -> click.Command:
        @functools.wraps(function)
        def call(session: CliSession, /, *args: Any, as_json: bool, settings: tuple[str, ...], **given: Any) -> Any:
            session.flags = (*session.flags, *settings)
            repeat_settings(session.flags if name in LET_WORK else ())
            session.is_lenient = is_lenient
            is_json = as_json or bool(click.get_current_context().find_root().params.get("as_json"))
            try:
                return function(session, *args, as_json=is_json, **given)
            except NotFoundError as error:
                if error.reason_code == NotFoundError.reason_code:
                    _suggest(session, error)
                raise

        wrapped = click.command(name, cls=WordedCommand, context_settings={"help_option_names": ["-h", "--help"]})
        lang = click.option("--lang", cls=EverywhereOption, type=click.Choice(["ja", "en"]), expose_value=False)
        as_json = click.option("--json", "as_json", cls=EverywhereOption, is_flag=True)
        setting = click.option("-c", "settings", cls=EverywhereOption, multiple=True, metavar="KEY=VALUE")
        made = wrapped(as_json(lang(setting(click.pass_obj(call)))))
        made.words = f"{below}.{name}" if below else None
        return made

    return decorate


class Subcommands(WordedGroup):
    """A command of several: each is imported when it is called for, and said to be meant when it is mistyped."""

    def __init__(self, name: str, subcommands: tuple[str, ...]) -> None:
        super().__init__(name, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
        self.subcommands = subcommands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order a newcomer needs them."""
        return list(self.subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        if cmd_name not in self.subcommands:
            return None
        import importlib

        module = importlib.import_module(f"aiflow.cli.commands.{self.name}_{cmd_name}")
        found: click.Command = module.command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or say which one may have been meant."""
        name = args[0]
        if name not in self.subcommands and not name.startswith("-"):
            import difflib

            texts = current_texts()
            close = difflib.get_close_matches(name, self.subcommands, n=1)
            hint = texts("cli.did_you_mean", name=close[0]) if close else ""
            raise click.UsageError(texts.sentences(texts("cli.no_such_command", name=f"{self.name} {name}"), hint), ctx)
        return super().resolve_command(ctx, args)

    def meanings(self) -> Mapping[str, str]:
        """Return what each command does, by its name."""
        return {name: current_texts()(f"cli.{self.name}.{name}") for name in self.subcommands}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section(current_texts()("cli.commands")):
            formatter.write_dl(list(self.meanings().items()))


def _suggest(session: CliSession, error: NotFoundError) -> None:
    """Add to an error about an unknown id which one may have been meant."""
    import difflib

    wanted = str(error.context.get("request_id", "")).casefold()
    valid, broken = session.project.requests.load_all()
    ids = [*(request.id for request in valid), *(file.id for file in broken)]
    known = {each.casefold(): each for each in ids}
    close = difflib.get_close_matches(wanted, known, n=1)
    if close:
        error.context["detail"] = session.texts("cli.did_you_mean", name=known[close[0]])


class RequestIdType(click.ParamType[RequestId]):
    """An id, also given as its file: `requests/RQ-1.md`."""

    name = "request"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> RequestId:
        """Take the id out of what was typed."""
        if not value.strip():
            self.fail(current_texts()("cli.empty_id"), param, ctx)
        return read_id(value, session_of(ctx) if ctx else None)


def read_id(typed: str, session: CliSession | None) -> RequestId:
    """Take the id out of what was typed; which folder has the files is looked up only where one was typed."""
    from aiflow.wiring import id_in

    return id_in(typed, session.find_requests_dir()) if session and "/" in typed else id_in(typed)


class ClockTime(click.ParamType["tuple[int, int]"]):
    """A time of day: `22:00`."""

    name = "HH:MM"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Take hours and minutes out of what was typed."""
        import re

        typed = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", str(value).strip(), re.ASCII)
        if typed is None:
            self.fail(current_texts()("auto.no_time", value=value), param, ctx)
        return int(typed[1]), int(typed[2])


def next_moment(clock: tuple[int, int], after: datetime) -> datetime:
    """Return when a clock on the wall next shows a time; the night in which it is put forward or back, too."""
    from datetime import datetime as moment
    from datetime import time, timedelta

    day = after.astimezone().date()
    days = (moment.combine(day + timedelta(days=number), time(*clock)).astimezone() for number in range(3))
    return next(each for each in days if each > after)


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """Declare an option; its `help` is the key of a text."""
    return click.option(*names, cls=WordedOption, **settings)


def target_argument(*, is_required: bool = True) -> Callable[[F], F]:
    """Declare the argument that names a run: its id, or a request's for its latest run (SPEC §13)."""
    return click.argument(
        "target",
        type=RequestIdType(),
        metavar="REQUEST|RUN" if is_required else "[REQUEST|RUN]",
        required=is_required,
        shell_complete=complete_target,
    )


def baseline_option() -> Callable[[F], F]:
    """Declare the option that leaves out the tests of the base (RUN-17)."""
    return option("--no-baseline", is_flag=True, help="option.run.no_baseline")


def quick_option() -> Callable[[F], F]:
    """Declare the option that calls the implementer alone (RUN-18)."""
    return option("--quick", is_flag=True, help="option.run.quick")


def for_this_call(session: CliSession, **wanted: bool) -> None:
    """Set for this call what an option stands for; the advice of this process repeats it, as it does `-c`."""
    flags = {
        name: value for option, is_wanted in wanted.items() if is_wanted for name, value in STANDS_FOR[option].items()
    }
    said = tuple(f"{name}={str(value).lower()}" for name, value in flags.items())
    session.flags = (*session.flags, *said)
    if said:
        repeat_settings(session.flags)


def request_id_argument(*, is_required: bool = True) -> Callable[[F], F]:
    """Declare the argument that names a request, completed from the backlog."""
    return click.argument(
        "request_id",
        type=RequestIdType(),
        metavar="REQUEST" if is_required else "[REQUEST]",
        required=is_required,
        shell_complete=complete_request,
    )


def complete_request(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of this project's requests."""
    from click.shell_completion import CompletionItem

    from aiflow.errors import AiflowError

    session = session_of(ctx)
    try:
        valid, _ = session.project.requests.load_all()
    except AiflowError:
        return []
    return [CompletionItem(r.id, help=r.title) for r in sorted(valid) if r.id.startswith(incomplete)]


def complete_target(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of this project's requests, and those of its newest runs once an id of a run is begun."""
    from click.shell_completion import CompletionItem

    from aiflow.errors import AiflowError
    from aiflow.usecases.runs.list import list_runs

    requests = complete_request(ctx, param, incomplete)
    if not incomplete.startswith("RUN-"):
        return requests
    try:
        runs = list_runs(session_of(ctx).project.sources, limit=COMPLETED_RUNS).runs
    except AiflowError:
        return requests
    found = [CompletionItem(run.run_id, help=request_id) for request_id, run in runs]
    return requests + [item for item in found if item.value.startswith(incomplete)]
