"""What to do next is a value: every action can be typed, and none stands as text where it is decided."""

from __future__ import annotations

import ast
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from aiflow.cli.main import COMMANDS, cli
from aiflow.domain.issue_ways import for_issue
from aiflow.domain.lock import Lock, LockType
from aiflow.domain.next_action import ABOUT_SOMETHING, NOT_TYPED, OPEN, ActionKind, NextAction, set_status, shell
from aiflow.domain.reasons import CATALOGUE, WAYS, way_to_mend
from aiflow.domain.request import RequestId
from aiflow.errors import AiflowError
from aiflow.messages import Texts
from aiflow.messages.advice import ADVISED, SLOT, Advice
from aiflow.messages.commands import _OPTIONS, _PLAIN, as_plain, command_line
from aiflow.usecases.runs.locks import in_progress
from aiflow.usecases.shapes.errors import actions_of

ROOT = Path(__file__).parents[2]
FACTS = {"request_id": "RQ-1", "task_id": "T-1"}
RESUME = NextAction(ActionKind.RESUME, "RQ-1")

# An action of each kind with every option that it is ever given.
EXAMPLES = [
    *(NextAction(kind, "RQ-1" if kind in ABOUT_SOMETHING else None) for kind in ActionKind if kind not in NOT_TYPED),
    RESUME.having(keep_changes="", force=""),
    RESUME.having(no_baseline=""),
    NextAction(ActionKind.RETRY_STEP, "RQ-1", options=(("step_id", "S02"), ("force", ""), ("keep_changes", ""))),
    NextAction(ActionKind.ANSWER, "RQ-1", options=(("answer", 'It\'s "$HOME"'),)),
    NextAction(ActionKind.SEND_BACK, "RQ-1", options=(("message", "two words"),)),
    NextAction(ActionKind.RUN, "RQ-1", options=(("setting", "agent.kind=demo"),)),
    NextAction(ActionKind.SHOW, run_id="RUN-20261104-013000-5e1f0a"),
    NextAction(ActionKind.DOCTOR, options=(("full", ""),)),
    NextAction(ActionKind.AGENTS, options=(("check", ""),)),
    NextAction(ActionKind.SETTINGS, options=(("key", "agent.env"),)),
    NextAction(ActionKind.DEMO, options=(("folder", "a folder"),)),
    NextAction(ActionKind.INIT, options=(("requests_dir", "backlog"),)),
    NextAction(ActionKind.QUEUE_ADD, "RQ-1", options=(("namespace", "shop"),)),
    NextAction(ActionKind.QUEUE_ADD, options=(("prompt", OPEN),)),
    NextAction(ActionKind.QUEUE_LIST, options=(("all", ""),)),
    NextAction(ActionKind.LIST, options=(("found", ""),)),
    NextAction(ActionKind.QUEUE_SHOW, task_id="T-1", options=(("namespace", "shop"),)),
    NextAction(ActionKind.QUEUE_CANCEL, task_id="T-1", options=(("namespace", "shop"),)),
    NextAction(ActionKind.RUNNER, options=(("setting", "namespace=shop"),)),
    NextAction(ActionKind.RUNNER, options=(("once", ""),)),
    NextAction(ActionKind.AUTO, options=(("continue", ""),)),
    NextAction(ActionKind.UP, options=(("port", "4400"),)),
    NextAction(ActionKind.SERVICE_INSTALL, options=(("print", ""),)),
    NextAction(ActionKind.LOCKS, options=(("break", "turn"),)),
    set_status("RQ-1", "ready"),
    NextAction(ActionKind.SET, "RQ-1", options=(("depends_on", ""),)),
]
# What the terminal asks for is not always the whole of it: a title, or what is to be set, comes from the person.
LEFT_TO_THE_PERSON = {ActionKind.SEND_BACK: ("-m", OPEN), ActionKind.SET: ("status=ready",), ActionKind.NEW: ("Title",)}


def parse(words: list[str]) -> dict[str, Any]:
    """Have click take a command line apart, without doing what it says."""
    context = cli.make_context("aiflow", words)
    name, command, rest = cli.resolve_command(context, [*context._protected_args, *context.args])
    while isinstance(command, click.Group):
        context = command.make_context(name, rest, parent=context)
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
    assert command is not None
    return command.make_context(name, rest, parent=context).params


@pytest.mark.spec("CLI", "SEL-5")
@pytest.mark.parametrize("action", [*EXAMPLES, *ADVISED.values()], ids=command_line)
def test_every_action_is_a_command_that_the_program_takes(action: NextAction) -> None:
    program, *words = shlex.split(command_line(action))
    assert program == "aiflow"
    more = LEFT_TO_THE_PERSON.get(action.kind, ()) if not action.options else ()
    given = parse([*words, *more])
    said = json.dumps(given, default=str, ensure_ascii=False)
    for value in (action.target, *(value for name, value in action.options if name not in ("setting", "KEY"))):
        assert json.dumps(value or "", ensure_ascii=False).strip('"') in said


@pytest.mark.spec("ERR-1", "SEL-5", "CLI")
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("code", CATALOGUE)
def test_everything_that_a_reason_advises_is_taken_by_the_program(code: str, language: str) -> None:
    texts = Texts(language)
    general = texts.message(code, FACTS).actions
    way = way_to_mend(code, "RQ-1")
    advised = [step for each in general for step in each.steps] + ([way] if way else [])
    # Who tried to run it is told the same about running, and nothing that only a run has.
    tried = AiflowError(reason_code=code, typed="run", **FACTS)
    advised += [step for each in actions_of(tried, general) for step in each.steps]
    for step in advised:
        if step.kind is not ActionKind.SHELL:
            more = LEFT_TO_THE_PERSON.get(step.kind, ()) if not step.options else ()
            assert parse([*shlex.split(command_line(step))[1:], *more]) is not None
    # Options and commands that stand in words alone are there as well.
    for words in (each.typed for each in general if not each.steps):
        named = re.findall(r"`(-{0,2}[a-z][a-z-]*)`", words)
        commands = [name for name in named if name in COMMANDS]
        for option in (name for name in named if name.startswith("--")):
            assert commands, (code, words)
            assert all(option in options_of(name) for name in commands), (code, words)


def options_of(name: str) -> list[str]:
    """Every option of a command."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return [option for param in command.params for option in param.opts]


def test_the_help_of_a_command_is_an_action_too() -> None:
    program, *words = shlex.split(command_line(NextAction(ActionKind.QUEUE_ADD, options=(("help", ""),))))
    assert program == "aiflow"
    with pytest.raises(click.exceptions.Exit):
        parse(words)


def test_every_kind_and_every_option_is_tried() -> None:
    assert {action.kind for action in EXAMPLES} == set(ActionKind) - NOT_TYPED
    tried = {name for action in EXAMPLES if action.kind is not ActionKind.SET for name, _ in action.options}
    assert tried == {*_OPTIONS, *_PLAIN, "setting"} - {"help"}


def test_a_command_of_another_program_is_typed_as_it_is() -> None:
    assert command_line(shell("git -C 'a b' status")) == "git -C 'a b' status"


@pytest.mark.parametrize(
    ("action", "typed"),
    [
        (NextAction(ActionKind.RESUME), "aiflow resume <ID>"),
        (NextAction(ActionKind.WHY, "要望-1"), "aiflow why 要望-1"),
        (NextAction(ActionKind.ANSWER, "RQ-1", options=(("answer", OPEN),)), 'aiflow resume RQ-1 --answer "…"'),
        (NextAction(ActionKind.ANSWER, "RQ-1", options=(("answer", "$(x)"),)), "aiflow resume RQ-1 --answer '$(x)'"),
        (NextAction(ActionKind.ANSWER, "RQ-1", options=(("answer", "late"),)), 'aiflow resume RQ-1 --answer "late"'),
        (NextAction(ActionKind.UPDATE, "RQ-1"), "aiflow resume RQ-1 --update"),
        (NextAction(ActionKind.RUNNER, options=(("setting", "namespace=x"),)), "aiflow -c namespace=x runner"),
    ],
)
def test_how_an_action_is_typed(action: NextAction, typed: str) -> None:
    assert command_line(action) == typed


def test_an_action_includes_another_that_says_less() -> None:
    assert RESUME.having(force="").includes(RESUME)
    assert not RESUME.includes(RESUME.having(force=""))
    assert not RESUME.includes(NextAction(ActionKind.RESUME, "RQ-2"))
    assert not RESUME.includes(NextAction(ActionKind.REPLAN, "RQ-1"))


# --- messages --------------------------------------------------------------------------------------------------------


def strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inside for text in strings(each)]


def is_typed(text: str) -> bool:
    """Tell whether a text has a command of ours in it."""
    return re.search(rf"\baiflow (-c \S+ )?({'|'.join(COMMANDS)})(?![\w-])", text) is not None


@pytest.mark.spec("ERR-1")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_no_action_of_a_message_is_shell_text_and_each_names_what_exists(language: str) -> None:
    messages = json.loads((ROOT / f"src/aiflow/messages/messages.v1.{language}.json").read_text(encoding="utf-8"))
    assert [code for code, entry in messages.items() if any(map(is_typed, strings(entry["actions"])))] == []
    used = set()
    for code, entry in messages.items():
        for action in (each for given in entry["actions"] for each in (given if isinstance(given, list) else [given])):
            if isinstance(action, dict) and "do" in action:
                names = [action["do"]] if isinstance(action["do"], str) else action["do"]
                assert action["text"].count(SLOT) in (0 if len(names) == 1 else len(names), len(names)), code
                used |= set(names)
    # The facts that are actions themselves: how a store is started, and where the work of a request is that is gone.
    assert used == {*ADVISED, "start", "look", "merge"} - {"run.any"}


@pytest.mark.spec("ERR-1")
def test_what_a_message_advises_has_words_for_the_terminal_and_actions_for_a_page() -> None:
    first, second = Texts("en").message("NOT_READY", FACTS).actions
    assert first.steps == (NextAction(ActionKind.WHY, "RQ-1"),)
    assert first.typed == "See its status and what it waits for: `aiflow why RQ-1`"
    assert second.steps == (set_status("RQ-1", "ready"),)
    between = Texts("ja").message("RUN_IN_PROGRESS", FACTS).actions[-1]
    assert [step.kind for step in between.steps] == [ActionKind.LOCKS, ActionKind.DOCTOR]
    assert "`aiflow locks` でロックを確認し、`aiflow doctor --full` で" in between.typed
    assert Advice((RESUME,)).typed == "aiflow resume RQ-1"


@pytest.mark.spec("ERR-1", "QUE-5", "LCK-4")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_who_meets_the_turn_of_a_runner_is_advised_about_that(language: str) -> None:
    refused = in_progress(Lock(LockType.TURN, pid=7, host="here"), RequestId("RQ-1"))
    message = Texts(language).message(refused.reason_code, refused.context)
    assert "pid 7, here" in message.summary
    steps = [command_line(step) for advice in message.actions for step in advice.steps]
    assert steps == ["aiflow locks", "aiflow locks break turn", "aiflow locks", "aiflow doctor --full"]
    assert "<" not in "".join(advice.typed for advice in message.actions)


def test_who_tried_something_else_than_to_resume_tries_that_again() -> None:
    advice = Texts("en").message("DOCTOR_FAILED", FACTS).actions[1]
    again = advice.trying(ActionKind.RUN)
    assert again is not None
    assert again.steps == (replace(RESUME, kind=ActionKind.RUN),)
    assert Advice((RESUME.having(keep_changes=""),)).trying(ActionKind.RUN) is None
    by_demo = RESUME.having(setting="agent.kind=demo")
    assert Advice((by_demo,)).trying(ActionKind.RUN) == Advice((replace(by_demo, kind=ActionKind.RUN),))


@pytest.mark.spec("ISS-6", "ERR-1")
def test_who_could_not_run_an_issue_is_not_told_to_answer_a_run_that_never_was() -> None:
    advices = [
        each.trying(ActionKind.RUN) for each in Texts("en").message("DOCTOR_FAILED", {"request_id": "GH-7"}).actions
    ]
    typed = [command_line(step) for each in advices if each for step in each.steps]
    assert "aiflow run GH-7" in typed
    assert not [line for line in typed if "answer" in line or "resume" in line]
    by_demo = for_issue(NextAction(ActionKind.RESUME, RequestId("GH-7"), options=(("setting", "agent.kind=demo"),)))
    assert command_line(by_demo).startswith("aiflow -c agent.kind=demo ")


def test_an_action_that_is_a_fact_is_said_as_its_command() -> None:
    start = NextAction(ActionKind.STORE_START)
    for fact in (start, "aiflow queue store start"):  # what a run recorded is words
        advice = Texts("en").message("STORE_UNREACHABLE", {"start": fact}).actions[0]
        assert advice.typed.startswith("Start this machine's store: `aiflow queue store start` (")
    assert Texts("en").message("STORE_UNREACHABLE", {}).actions[0].steps == ()
    assert Texts("en")("task.next", command=start).endswith("aiflow queue store start")
    assert as_plain([start, (shell("ls"),), 7]) == ["aiflow queue store start", ["ls"], 7]


def test_every_way_on_is_an_action() -> None:
    assert all(isinstance(step, NextAction) for step in WAYS.values())
    assert all(Texts("en").message(code, FACTS).actions for code in CATALOGUE)


# --- the house -------------------------------------------------------------------------------------------------------


def words_in(path: Path) -> list[str]:
    """Every text in a file of code, docstrings apart."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [str(node.value) for node in texts if id(node) not in docs]


@pytest.mark.parametrize("room", ["domain", "usecases", "ports"])
def test_no_command_of_ours_is_written_out_where_it_is_decided_what_to_do(room: str) -> None:
    """The words of commands are in `messages`, and in the terminal's own examples."""
    files = (ROOT / "src/aiflow" / room).rglob("*.py")
    begins = re.compile(rf"\baiflow ({'|'.join(COMMANDS)}|)(?![\w-])")
    assert [(path.name, text) for path in files for text in words_in(path) if begins.search(text)] == []
