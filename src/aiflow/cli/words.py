"""Help in two languages: options and commands name a text, which is looked up when it is shown."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from aiflow.cli.session import current_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from click.shell_completion import CompletionItem


class WordedOption(click.Option):
    """An option whose `help` is the key of a text."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's line in the chosen language."""
        key, self.help = self.help, current_texts()(self.help or "")
        try:
            return super().get_help_record(ctx)
        finally:
            self.help = key


class EverywhereOption(click.Option):
    """An option that every command takes: `aiflow --help` shows it, once."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return nothing; shells complete it anyway."""
        return None


class WideFormatter(click.HelpFormatter):
    """Writes help in columns as a terminal counts them: a Japanese character takes two."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        from aiflow.cli.terminal.layout import wrap

        indent = " " * self.current_indent
        for line in wrap(text, max(self.width - self.current_indent, 20)):
            self.write(f"{indent}{line}\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write terms and what they mean in two columns."""
        from aiflow.cli.terminal.layout import display_width, pad, wrap

        pairs = list(rows)
        first = min(max(display_width(term) for term, _ in pairs), col_max) + col_spacing
        indent = " " * self.current_indent
        for term, meaning in pairs:
            lines = wrap(meaning, max(self.width - first - self.current_indent, 20))
            if display_width(term) > first - col_spacing:
                cut = wrap(term.replace("|", "| "), max(self.width - self.current_indent - 4, 20))
                self.write(f"\n{indent}    ".join([f"{indent}{cut[0]}", *cut[1:]]).replace("| ", "|") + "\n")
                term = ""  # noqa: PLW2901
            for number, line in enumerate(lines):
                self.write(f"{indent}{pad(term if number == 0 else '', first)}{line}".rstrip() + "\n")


class _WideContext(click.Context):
    formatter_class = WideFormatter


class _Worded:
    """A command whose help and epilog are the texts `cli.<words>` and `cli.<words>.more`.

    Its words are named as it is; those of a command below another one with both names: `queue.add`.
    """

    context_class: type[click.Context] = _WideContext
    name: str | None
    words: str | None = None
    help: str | None
    epilog: str | None

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the command's one line."""
        return current_texts()(f"cli.{self.words or self.name}")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does."""
        texts = current_texts()
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(texts(f"cli.{self.words or self.name}"))
            if texts.has(f"cli.{self.words or self.name}.more"):
                formatter.write_paragraph()
                formatter.write_text(texts(f"cli.{self.words or self.name}.more"))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write where the options of every command are shown, and the command's examples."""
        texts = current_texts()
        if ctx.parent is not None:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(texts("cli.everywhere"))
        if texts.has(f"cli.{self.words or self.name}.examples"):
            with formatter.section(texts("cli.examples")):
                for line in texts(f"cli.{self.words or self.name}.examples").splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the command's options, each with its words."""
        assert isinstance(self, click.Command)
        items = click.Command.shell_complete(self, ctx, incomplete)
        for item in items:
            if item.help is not None and current_texts().has(item.help):
                item.help = current_texts()(item.help)
        return items

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return `--help` with its own words."""
        option: click.Option | None = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.help = current_texts()("option.help")
        return option


class WordedCommand(_Worded, click.Command):
    """A command in two languages."""


class WordedGroup(_Worded, click.Group):
    """A group of commands in two languages, listed and completed without importing them."""

    def meanings(self) -> Mapping[str, str]:
        """Return what each command does, by its name."""
        return {}

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the commands and the options."""
        from click.shell_completion import CompletionItem

        offered = [CompletionItem(name, help=text) for name, text in self.meanings().items()]
        return [item for item in offered if item.value.startswith(incomplete)] + super().shell_complete(ctx, incomplete)


_CLICK_MODULES = ("_termui_impl", "core", "decorators", "exceptions", "formatting", "parser", "termui", "types")


def translate_click(language: str) -> None:
    """Let click's own words be in the chosen language too; it asks gettext, which has no catalogue for it."""
    table: dict[str, str] = {}
    if language != "en":
        with open(f"{os.path.dirname(__file__)}/click.{language}.json", "rb") as file:
            table = json.load(file)

    def translate(text: str) -> str:
        return table.get(text, text)

    def translate_plural(one: str, many: str, count: int) -> str:
        return translate(one if count == 1 else many)

    for name in _CLICK_MODULES:
        module: Any = sys.modules.get(f"click.{name}")
        if hasattr(module, "_"):
            module._ = translate
        if hasattr(module, "ngettext"):
            module.ngettext = translate_plural
