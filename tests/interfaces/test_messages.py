"""The words (ERR-1): complete in Japanese and English, with the same facts in both."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import string
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from aiflow.adapters.agents.call.command import FAILURES
from aiflow.cli.main import COMMANDS, cli
from aiflow.cli.words import WordedOption
from aiflow.domain.activity import ActivityKind
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.programs import AgentTrouble, Login
from aiflow.domain.health import Health
from aiflow.domain.lifecycle import RunEvent, RunState
from aiflow.domain.lock import LockVerdict
from aiflow.domain.programs import End
from aiflow.domain.reasons import CATALOGUE
from aiflow.domain.request import ProblemKind, RequestStatus
from aiflow.domain.runs.retry import ReplanSignal
from aiflow.errors import AiflowError
from aiflow.messages import Texts, choose_language
from aiflow.settings import TABLE, SettingKind, Source
from aiflow.settings.checking import MistakeKind
from aiflow.usecases.project.init import meaning

ROOT = Path(__file__).parents[2]
MESSAGES = ROOT / "src/aiflow/messages"
LANGUAGES = ("en", "ja")


def load(kind: str, language: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((MESSAGES / f"{kind}.v1.{language}.json").read_text(encoding="utf-8"))
    return loaded


def placeholders(*texts: str) -> set[str]:
    return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}


class Said(NamedTuple):
    """One way to say an action: its words, and what to do."""

    text: str
    do: tuple[str, ...]


def alternatives(entry: dict[str, Any]) -> list[list[Said]]:
    """An action's words: most have one way to say it, some the precise ones before the general one."""
    return [list(map(said, action if isinstance(action, list) else [action])) for action in entry["actions"]]


def said(action: str | dict[str, Any]) -> Said:
    if isinstance(action, str):
        return Said(action, ())
    if set(action) == {"text", "for"}:  # what helps only at a terminal, or in a script
        assert action["for"] in ("terminal", "script"), action
        return Said(action["text"], (f"for {action['for']}",))
    assert set(action) == {"text", "do"}, action
    return Said(action["text"], (action["do"],) if isinstance(action["do"], str) else tuple(action["do"]))


@pytest.mark.spec("ERR-1")
def test_every_reason_code_has_its_message_in_both_languages() -> None:
    english, japanese = load("messages", "en"), load("messages", "ja")
    assert list(english) == list(japanese) == list(CATALOGUE)
    for code in CATALOGUE:
        for entry in (english[code], japanese[code]):
            assert set(entry) == {"title", "summary", "actions"}, code
            assert entry["title"].strip(), code
            assert entry["summary"].strip(), code
            assert entry["actions"], code
            assert all(ways and all(each.text.strip() for each in ways) for ways in alternatives(entry)), code
        both = [placeholders(entry["title"], entry["summary"]) for entry in (english[code], japanese[code])]
        assert both[0] == both[1], code
        ours, theirs = (
            [[(placeholders(each.text) - {"do"}, sorted(each.do)) for each in ways] for ways in alternatives(entry)]
            for entry in (english[code], japanese[code])
        )
        assert ours == theirs, code


@pytest.mark.spec("ERR-1")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_most_precise_advice_is_given_whose_facts_are_known(language: str) -> None:
    texts = Texts(language)

    def first(code: str, **facts: str) -> str:
        return texts.message(code, {"request_id": "RQ-1", **facts}).actions[0].typed

    assert "<" not in first("AGENT_AUTH_REQUIRED") + first("AGENT_NOT_FOUND")
    assert all(word in first("AGENT_AUTH_REQUIRED") for word in ("`claude auth login`", "`codex login`"))
    of_one = first("AGENT_AUTH_REQUIRED", log_in="codex login", key_variable="CODEX_API_KEY")
    assert ("`codex login`" in of_one, "CODEX_API_KEY" in of_one, "claude" in of_one) == (True, True, False)
    assert "opencode auth login" in first("AGENT_AUTH_REQUIRED", log_in="opencode auth login")
    assert "npm install -g x" in first("AGENT_NOT_FOUND", install="npm install -g x")


@pytest.mark.spec("ERR-1")
def test_the_languages_are_not_mixed_up() -> None:
    kana = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
    for code, entry in load("messages", "ja").items():
        assert kana.search(entry["summary"]), code
    for code, entry in load("messages", "en").items():
        assert not kana.search(entry["title"] + entry["summary"] + json.dumps(entry["actions"], ensure_ascii=False)), (
            code
        )
    for key, text in load("ui", "en").items():
        assert not kana.search(text), key


@pytest.mark.spec("ERR-1")
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_words_send_anybody_to_a_file_that_only_the_sources_have(language: str) -> None:
    """Who installed the package has neither the documentation's files nor a Makefile."""
    for kind in ("messages", "ui"):
        told = (MESSAGES / f"{kind}.v1.{language}.json").read_text(encoding="utf-8")
        assert re.findall(r"docs/[\w/-]+\.md", told) == []
        assert re.findall(r"`make [^`]+`", re.sub(r"(?:in a clone|クローンでは)(?::| )*`make setup`", "", told)) == []


def test_the_seeds_own_words_are_kept() -> None:
    assert load("messages", "ja")["RUN_IN_PROGRESS"]["title"] == "同一RequestのRunが実行中です"
    assert load("messages", "ja")["QUEUE_IN_PROGRESS"] == {
        "title": "キュー実行がすでに動作中です",
        "summary": "Auto-runは同時に1つのみ実行できます。",
        "actions": [
            {"text": "別タブ/別ウィンドウで起動していないか確認", "do": "locks"},
            "しばらく待つ（TTLで回収されます）",
            {"text": "必要なら doctor(full) でロック回収を実施", "do": "doctor.full"},
        ],
    }


@pytest.mark.parametrize("path", sorted(MESSAGES.glob("*.json")), ids=lambda path: path.name)
def test_no_text_is_given_twice_under_one_name(path: Path) -> None:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in found]
        assert [name for name in names if names.count(name) > 1] == []
        return dict(found)

    json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=pairs)


def test_all_other_words_are_complete_with_the_same_facts() -> None:
    english, japanese = load("ui", "en"), load("ui", "ja")
    assert list(english) == list(japanese)
    for key in english:
        assert japanese[key].strip(), key
        assert placeholders(english[key]) == placeholders(japanese[key]), key


def test_everything_that_can_be_said_has_words() -> None:
    texts = Texts("en")
    keys = [f"problem.{kind.value}" for kind in ProblemKind]
    keys += [f"status.{status}" for status in RequestStatus]
    keys += [f"settings_mistake.{kind}" for kind in MistakeKind] + [f"kind.{kind}" for kind in SettingKind]
    keys += [f"source.{source}" for source in Source]
    keys += [f"auto.doing.{state}" for state in RunState]  # its process may hold a run that has ended a moment longer
    keys += [f"event.{event}" for event in RunEvent] + [f"role.{role}" for role in Role]
    keys += [f"login.{login}" for login in Login]
    keys += [f"verdict.{verdict}" for verdict in LockVerdict] + [f"doctor.{health.lower()}" for health in Health]
    selection = [c for c, reason in CATALOGUE.items() if reason.category == "SELECTION"]
    keys += [f"detail.{c}" for c in selection if c not in ("REQUEST_INVALID", "DUPLICATE_ID")]
    assert [key for key in keys if not texts.has(key)] == []
    for language in LANGUAGES:
        for row in TABLE:
            assert not meaning(row, Texts(language)).startswith("setting."), row.name


@pytest.mark.spec("DOC-1")
def test_everything_the_doctor_says_has_words_and_it_says_all_it_has_words_for() -> None:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "src/aiflow/usecases").rglob("*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    calls = (node for node in nodes if is_name(node.func, "Finding"))
    # A message is a text, or the beginning of one that goes on with the verdict, or with an agent's trouble.
    messages = {ast.unparse(call.args[3]).removeprefix("f").strip("'") for call in calls}
    endings = {
        "": ("pass", "warn"),
        "agent.": tuple(AgentTrouble),
        "account.": ("app", "fine_grained", "classic", "installation", "token"),
        "notify_urls.": ("pass", "unset", "missing"),
    }
    said = {
        begin + ending
        for begin, brace, _ in (key.partition("{") for key in messages)
        for ending in (endings.get(begin, endings[""]) if brace else ("",))
    }
    assert {key for key in load("ui", "en") if key.startswith("check.")} == {f"check.{key}" for key in said}


def test_every_command_and_option_has_words() -> None:
    texts = Texts("en")
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in COMMANDS}
    groups = {name: command for name, command in found.items() if isinstance(command, click.Group)}
    for name, group in groups.items():
        found |= {f"{name}.{below}": group.get_command(context, below) for below in group.list_commands(context)}
    assert "queue.add" in found
    for name, command in found.items():
        assert texts.has(f"cli.{name}")
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, WordedOption):
                assert texts.has(parameter.help or ""), (name, parameter.name)


@functools.cache
def nodes_of_the_code() -> list[ast.AST]:
    """Parse the product, once for all who look for something in it: every call, keyword and text."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "src/aiflow").rglob("*.py"))
    wanted = (ast.Constant, ast.JoinedStr, ast.keyword, ast.Call)
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, wanted)]


def is_name(node: ast.AST, *names: str) -> bool:
    """Tell whether a node is one of some bare names; to write the node as text takes much longer."""
    return isinstance(node, ast.Name) and node.id in names


def test_every_text_that_code_asks_for_exists_and_none_is_left_over() -> None:
    asked: set[str] = set()
    prefixes: set[str] = set()
    for node in nodes_of_the_code():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            asked.add(node.value)
        elif isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
            prefixes.add(str(node.values[0].value))
    prefixes = {prefix for prefix in prefixes if re.fullmatch(r"[a-z_]+\.[a-z_.]*", prefix)}
    for page in (ROOT / "src/aiflow/web/templates").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for key, other, more in re.findall(
            r"\b(?:t|linked|timed)\(\"([\w.]+)\"(?: if [^\"]+ else \"([\w.]+)\")?( ~)?", text
        ):
            (prefixes if more else asked).update(filter(None, (key, other)))
    left_over = [
        key for key in load("ui", "en") if key not in asked and not any(key.startswith(prefix) for prefix in prefixes)
    ]
    assert left_over == []


def test_every_end_of_a_program_has_words() -> None:
    assert set(FAILURES) == {*End, "used_up"}
    assert {f"agent_end.{end}" for end in FAILURES} == {key for key in load("ui", "en") if key.startswith("agent_end.")}
    assert {f"command_end.{end}" for end in End} == {key for key in load("ui", "en") if key.startswith("command_end.")}
    assert {f"replan.{signal}" for signal in ReplanSignal} == {
        key for key in load("ui", "en") if key.startswith("replan.")
    }


def test_every_translation_of_clicks_words_is_still_click_s() -> None:
    table = json.loads((ROOT / "src/aiflow/cli/click.ja.json").read_text(encoding="utf-8"))
    source = "".join(path.read_text(encoding="utf-8") for path in Path(click.__file__).parent.glob("*.py"))
    strings = {
        node.value
        for node in ast.walk(ast.parse(source.replace("from __future__ import annotations", "")))
        if isinstance(node, ast.Constant)
    }
    assert [text for text in table if text not in strings] == []
    for text, translated in table.items():
        assert placeholders(text) == placeholders(translated), text


def test_what_click_says_at_a_confirmation_is_translated() -> None:
    table = json.loads((ROOT / "src/aiflow/cli/click.ja.json").read_text(encoding="utf-8"))
    said = re.findall(r'\b_\("([^"]+)"\)', inspect.getsource(click.confirm))
    assert said
    assert set(said) <= set(table)


def test_every_reason_code_in_the_code_is_in_the_catalogue() -> None:
    kinds: list[type[AiflowError]] = [AiflowError, *AiflowError.__subclasses__()]
    used = {kind.reason_code for kind in kinds}
    for node in nodes_of_the_code():
        if isinstance(node, ast.keyword) and node.arg == "reason_code" and isinstance(node.value, ast.Constant):
            used.add(str(node.value.value))
        if isinstance(node, ast.Call) and is_name(node.func, "Barrier", "Refused", "StopRun"):
            first = node.args[0]
            used |= {str(first.value)} if isinstance(first, ast.Constant) else set()
    used.discard("None")
    assert used - set(CATALOGUE) == set()


def test_activity_kinds_are_plain_words() -> None:
    assert all(re.fullmatch(r"[a-z_]+", kind) for kind in ActivityKind)


@pytest.mark.parametrize(
    ("flag", "environ", "setting", "expected"),
    [
        ("ja", {"AIFLOW_LANG": "en"}, "en", "ja"),
        (None, {"AIFLOW_LANG": "ja", "LANG": "en_US.UTF-8"}, "en", "ja"),
        (None, {"LANG": "ja_JP.UTF-8"}, "en", "en"),
        (None, {"LANG": "ja_JP.UTF-8"}, None, "ja"),
        (None, {"LANG": "ja_JP.UTF-8", "LC_ALL": "C"}, None, "en"),
        (None, {"LC_MESSAGES": "ja_JP"}, None, "ja"),
        (None, {"AIFLOW_LANG": "fr"}, None, "en"),
        (None, {}, None, "en"),
    ],
)
@pytest.mark.spec("CFG")
def test_the_language_is_chosen_by_flag_variable_settings_locale(
    flag: str | None, environ: dict[str, str], setting: str | None, expected: str
) -> None:
    assert choose_language(flag, environ, setting) == expected


def test_a_fact_that_is_not_known_stays_visible() -> None:
    assert Texts("en").message("REQUEST_NOT_FOUND", {}).summary.count("<request_id>") == 1
    assert Texts("xx").language == "en"
    assert Texts("en")("no.such.key") == "no.such.key"
