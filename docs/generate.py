"""Write the generated reference pages: every fact in them comes from the code, so that they cannot drift from it.

`make docs` writes them; `docs/generate.py --check` only says which ones are out of date.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from aiflow.cli.main import COMMANDS, GROUPS, cli
from aiflow.cli.manual import manual_page
from aiflow.cli.session import current_texts, use_texts
from aiflow.domain.reasons import ExitCode
from aiflow.messages import Texts
from aiflow.settings import ENV_PREFIX, ROLES, TABLE, Setting, SettingKind
from aiflow.usecases.project.init import to_toml
from api_reference import INTRO as API_INTRO
from api_reference import api_sections
from json_reference import INTRO as JSON_INTRO
from json_reference import sections as json_sections
from lifecycle_reference import lifecycle_page
from page_parts import Edition, code, page, prose, table
from reason_reference import reasons_page
from written_parts import written_pages

DOCS = Path(__file__).resolve().parent
ENGLISH = Edition(Texts("en"), "reference")
# What the pages say in Japanese besides the program's own words.
JAPANESE = Edition(Texts("ja"), "ja/reference", json.loads((DOCS / "words.ja.json").read_text("utf-8")))


def pages() -> dict[str, str]:
    """Return every page with something generated: path below docs/ -> text. The same in every locale."""
    made = written_pages(DOCS, (ENGLISH, JAPANESE))
    for edition in (ENGLISH, JAPANESE):
        with _speaking(edition.texts):
            made |= {
                f"{edition.folder}/cli.md": cli_page(edition),
                f"{edition.folder}/settings.md": settings_page(edition),
                f"{edition.folder}/reason-codes.md": reasons_page(edition),
                f"{edition.folder}/lifecycle.md": lifecycle_page(edition),
            }
    with _speaking(ENGLISH.texts):
        made["reference/aiflow.1"] = manual_page(cli, GROUPS)
        made["reference/json.md"] = page("JSON", JSON_INTRO, *json_sections())
        made["reference/api.md"] = page("HTTP API", API_INTRO, *api_sections())
    return made


def main(args: Sequence[str]) -> int:
    """Write the pages, or with --check name those that differ."""
    is_check = "--check" in args
    current = pages()
    stale = {path: text for path, text in current.items() if _current(path) != text}
    folders = [DOCS / edition.folder for edition in (ENGLISH, JAPANESE)]
    stray = {str(path.relative_to(DOCS)) for folder in folders for path in folder.glob("*")} - set(current)
    for path in sorted(stray):
        print(f"docs/{path}: nothing writes this page")
    for path, text in stale.items():
        print(f"docs/{path}: " + ("out of date, run `make docs`" if is_check else "written"))
        if not is_check:
            (DOCS / path).parent.mkdir(parents=True, exist_ok=True)
            (DOCS / path).write_text(text, encoding="utf-8", newline="\n")
    return 1 if is_check and (stale or stray) else 0


def _current(path: str) -> str | None:
    file = DOCS / path
    return file.read_text(encoding="utf-8") if file.exists() else None


@contextmanager
def _speaking(texts: Texts) -> Iterator[None]:
    """Let the program's help be in one language, whatever was chosen before."""
    before = current_texts()
    use_texts(texts)
    try:
        yield
    finally:
        use_texts(before)


# --- commands --------------------------------------------------------------------------------------------------------

CLI_INTRO = """
Every command takes `--help`, `--json` ([shapes](json.md)), `--lang` and `-c KEY=VALUE`, and exits with a code of the
table below. `list`, `show`, `next`, `why`, `forecast`, `runs`, `logs`, `report`, `settings` and `completion` only read
and never write anything. Nor do `doctor` without `--full`, `locks` without `break` and `clean --dry-run`; nor `queue
list`, `queue show`, `queue counts`, `queue runners` and `queue namespaces`, except that they start this machine's store
if it is the one used. Commands about a run take a run id, or a request id for its latest run. Options of `aiflow`
itself come before the command: `aiflow -C ../shop next`.
"""
EXIT_MEANINGS = {
    "OK": "Done, even if nothing is runnable: that is an answer, not an error. `run`, `resume`, `retry-step` and "
    "`replan` only if the run is DONE, `accept` only if it is merged; otherwise they exit with the code of the reason, "
    "or of that reason's cause. `auto` even if it stopped at a limit or was stopped.",
    "BAD_INPUT": "Bad input: an unknown command, id, key or value, a mistake in the settings or in a request file.",
    "ENVIRONMENT": "The environment: no project here, no `requests/`, no agent or login, a used-up quota, an "
    "unreadable file, a full disk.",
    "CONFLICT": "A lock or a conflict: somebody else holds it, changed it, or has that id already; a request that "
    "cannot run now; a cancelled run; a limit that is reached.",
    "AGENT": "The agent: an answer that cannot be used, an error, a time limit, a question, a failed review.",
    "GIT": "Git: not a repository, no commits, uncommitted changes.",
    "TESTS": "Tests failed.",
    "INTERNAL": "A bug in aiflow. `AIFLOW_DEBUG=1` shows where.",
}


def cli_page(edition: Edition) -> str:
    """Return the page of all commands."""
    root = click.Context(cli, info_name="aiflow", **cli.context_settings)
    sections = [_command("aiflow", cli, root, edition)]
    for name in COMMANDS:
        command = cli.get_command(root, name)
        assert command is not None, name
        sections += _commands(f"aiflow {name}", command, root, edition)
    meanings = {**EXIT_MEANINGS, "130": "Interrupted by Ctrl-C where no run was cancelled."}
    codes = {code.name: str(int(code)) for code in ExitCode} | {"130": "130"}
    exits = [[code, edition.say(f"exit.{name}", meanings[name])] for name, code in codes.items()]
    return page(
        edition.say("cli", "Commands"),
        edition.say("cli.intro", CLI_INTRO),
        f"## {edition.say('exits', 'Exit codes')}\n",
        table(edition.headers("exits.headers", "code", "meaning"), exits),
        *sections,
    )


def _commands(title: str, command: click.Command, parent: click.Context, edition: Edition) -> Iterator[str]:
    """Write a command, and those below it."""
    ctx = click.Context(command, parent, title.rpartition(" ")[2], **command.context_settings)
    yield _command(title, command, ctx, edition)
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None, name
            yield from _commands(f"{title} {name}", below, ctx, edition)


def _command(title: str, command: click.Command, ctx: click.Context, edition: Edition) -> str:
    """Write one command: usage, what it does, options, examples."""
    name = getattr(command, "words", None) or command.name
    texts = edition.texts
    words = [texts(f"cli.{name}{part}") for part in ("", ".more") if texts.has(f"cli.{name}{part}")]
    lines = [f"## {title}\n", prose(edition.say("gap", " ").join(words))]
    usage = " ".join([title, *command.collect_usage_pieces(ctx)])
    lines += ["", f"```text\n{usage}\n```\n"]
    options = [param for param in command.get_params(ctx) if isinstance(param, click.Option)]
    records = [record for option in options if (record := option.get_help_record(ctx))]
    lines += [f"- `{names}`: {prose(meaning)}" for names, meaning in records]
    if texts.has(f"cli.{name}.examples"):
        lines += ["", f"```sh\n{texts(f'cli.{name}.examples')}\n```"]
    return "\n".join(lines) + "\n"


# --- settings --------------------------------------------------------------------------------------------------------

SETTINGS_INTRO = f"""
Settings are in `aiflow.toml` at the root of your repository; `aiflow init` writes one with every setting commented
out. A flag (`aiflow -c accept=auto …`) counts before an environment variable, that before the file, that before the
default. `aiflow settings` lists what holds and where it comes from.

An unknown key or a bad value stops with SETTINGS_INVALID, the file, the key and the line. In an
environment variable or a flag a list is written as in a shell (`./my-agent --fast`) or as in the file (`["a", "b"]`), a
boolean as `true` or `false`; an empty variable sets nothing. The variable of `agent.kind` is
`{ENV_PREFIX}AGENT_KIND`, and so on.
"""
GUIDES = {
    "github": "[GitHub issues in five minutes](../guides/github-issues.md) says what to set and which rights it needs."
}


def settings_page(edition: Edition) -> str:
    """Return the page of all settings."""
    sections: dict[str, list[Setting]] = {}
    for row in TABLE:
        parent = row.name.rpartition(".")[0]
        sections.setdefault("agent.roles" if parent.startswith("agent.roles") else parent, []).append(row)
    english = ("name", "kind", "default", "allowed", "environment variable", "meaning")
    headers = edition.headers("settings.headers", *english)
    parts: list[str] = []
    for name, rows in sections.items():
        parts.append(f"## {f'[{name}]' if name else edition.say('settings.top', 'At the top of the file')}\n")
        if name == "agent.roles":
            parts.append(f"{edition.texts('setting.agent.roles', roles=', '.join(ROLES))}{edition.say('stop', '.')}\n")
        if name in GUIDES:
            parts.append(f"{edition.say(f'guide.{name}', GUIDES[name])}\n")
        parts.append(table(headers, (_setting(row, edition) for row in rows)))
    return page(edition.say("settings", "Settings"), edition.say("settings.intro", SETTINGS_INTRO), *parts)


def _setting(row: Setting, edition: Edition) -> list[str]:
    is_role = row.name.startswith("agent.roles.")
    key = f"agent.{row.name.rpartition('.')[2]}" if is_role else row.name
    default = (
        edition.say("settings.that_of", "that of `{key}`").format(key=key) if is_role else code(to_toml(row.default))
    )
    variables = ", ".join(map(code, row.env_names))
    kind = edition.say(f"kind.{row.kind.value}", row.kind.value)
    return [code(row.name), kind, default, _allowed(row, edition), variables, edition.texts(f"setting.{key}")]


def _allowed(row: Setting, edition: Edition) -> str:
    """Say what a setting may be."""
    if row.choices:
        return ", ".join(code(to_toml(choice)) for choice in row.choices)
    if row.kind not in (SettingKind.INTEGER, SettingKind.NUMBER):
        return edition.say("settings.any", "any")
    if row.maximum == float("inf"):
        return edition.say("settings.or_more", "{minimum:g} or more").format(minimum=row.minimum)
    return edition.say("settings.to", "{minimum:g} to {maximum:g}").format(minimum=row.minimum, maximum=row.maximum)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
