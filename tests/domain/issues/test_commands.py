"""Slash commands: which words of a comment are one."""

from __future__ import annotations

import pytest

from aiflow.domain.issues.commands import CommandName, SlashCommand, find_commands

RETRY, CANCEL = CommandName.RETRY, CommandName.CANCEL


@pytest.mark.spec("ISS-6", "ISS-8")
@pytest.mark.parametrize(
    ("body", "commands"),
    [
        ("/retry", [(RETRY, "")]),
        ("/Retry\r\n", [(RETRY, "")]),
        ("  /retry use the new API", [(RETRY, "use the new API")]),
        ("I see.\n/retry\nUse the new API:\n\n```py\ncall()\n/cancel\n```\n", [(RETRY, "Use the new API:\n\n```py\ncall()\n/cancel\n```")]),
        ("/cancel\n\n/retry later", [(CANCEL, ""), (RETRY, "later")]),
        ("/re\u200btry", [(RETRY, "")]),
        ("/status", [(CommandName.STATUS, "")]),
        ("/help", [(CommandName.HELP, "")]),
        ("<details>\n\n/retry\n\n</details>", [(RETRY, "</details>")]),
        ("> quoted\n\n/retry", [(RETRY, "")]),
    ],
)  # fmt: skip
def test_a_command_stands_at_the_start_of_its_line(body: str, commands: list[tuple[CommandName, str]]) -> None:
    assert find_commands(body) == tuple(SlashCommand(*each) for each in commands)


@pytest.mark.spec("ISS-6")
@pytest.mark.parametrize(
    "body",
    [
        "please /retry",
        "/retrying",
        "/retry.",
        "/retry/me",
        "\\/retry",
        "`/retry`",
        "`a\n/retry\nb`",
        "*/retry*",
        "[/retry](x)",
        "    /retry",
        "\t/retry",
        "```\n/retry\n```",
        "~~~\n/retry",
        "> /retry",
        "> a\n/retry",
        "- /retry",
        "1. a\n   /retry",
        "<!--\n/retry\n-->",
        "<div hidden>\n/retry\n</div>",
        "<pre>\n/retry\n</pre>",
        "<b title='\n/retry\n'>",
        "/retry\n---",
        "# /retry",
        '/retry\n<!-- aiflow:note v1 {"key": "x"} -->',
        "/unknown",
        "",
    ],
)
def test_what_is_no_command(body: str) -> None:
    assert find_commands(body) == ()


@pytest.mark.spec("ISS-6")
def test_a_text_that_uses_the_finders_own_signs_changes_nothing() -> None:
    assert find_commands("\ue0000\ue001 text\n`/retry`") == ()
    assert find_commands("\ue000\n/retry a\ue001b") == (SlashCommand(RETRY, "a\ue001b"),)
