"""Details (ERR-1): an id and facts until they are shown, then in the reader's language; nothing English in Japanese."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.domain.details import detail, flat, from_flat
from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.errors import BadInputError, ConflictError
from aiflow.messages import Texts
from aiflow.messages.details import ENGLISH, Words, as_text, masked, recorded, said_again, words
from aiflow.usecases.shapes.errors import error_facts, error_shape

ROOT = Path(__file__).parents[2]
JAPANESE = Texts("ja")
NEWER = words("refused.newer", newer="RUN-2", run_id="RUN-1")
IN_THE_WAY = words("in_the_way.at", path="/shop", why=words("in_the_way.twice", branch="main", other="/other"))


# --- values ----------------------------------------------------------------------------------------------------------


def test_words_are_english_for_whoever_keeps_them_and_said_anew_for_whoever_reads_them() -> None:
    assert NEWER == "RUN-2 is newer than RUN-1"
    assert json.loads(json.dumps(NEWER)) == str(NEWER)
    assert JAPANESE.say(NEWER) == "RUN-1 より新しい RUN-2 があります"
    assert JAPANESE.say("what git said") == "what git said"
    assert JAPANESE("in_the_way.at", path="/shop", why=NEWER) == "/shop: RUN-1 より新しい RUN-2 があります"
    assert ENGLISH.say(IN_THE_WAY) == IN_THE_WAY == "/shop: main is checked out here and at /other"
    assert "チェックアウト" in JAPANESE.say(IN_THE_WAY)


def test_a_record_keeps_the_words_and_what_they_say_also_inside() -> None:
    text, facts = recorded(IN_THE_WAY)
    assert text == str(IN_THE_WAY)
    assert type(text) is str
    kept = tuple(json.loads(json.dumps(dict(facts))).items())
    assert said_again(kept, JAPANESE) == JAPANESE.say(IN_THE_WAY)
    assert recorded("what git said") == ("what git said", ())
    assert said_again((("path", "/shop"),), JAPANESE) == ""


def test_what_an_older_version_recorded_is_said_too() -> None:
    facts = (("told", "exited"), ("code", "3"), ("setting", "limits.run_minutes"))
    assert said_again(facts, ENGLISH) == "exit code 3"
    assert said_again(facts, JAPANESE) == "終了コード 3"
    assert said_again((("told", "no.such.text"),), JAPANESE) == ""


def test_a_detail_is_the_same_behind_its_record() -> None:
    told = detail("in_the_way.files", path="/shop", why=detail("in_the_way.deleted"), files="a, b")
    assert from_flat((*flat(told), ("told.later", "x"))[:-1]) == told
    assert from_flat((("path", "/shop"),)) is None


def test_secrets_are_taken_out_of_what_words_say() -> None:
    def mask(text: str) -> str:
        return text.replace("geheim", "***")

    told = words("agent.said", how=words("agent_end.exited", code=1), said="the key geheim")
    assert masked(told, mask) == "exit code 1: the key ***"
    assert isinstance(masked(told, mask), Words)
    assert recorded(told, mask)[0] == "exit code 1: the key ***"
    assert "geheim" not in str(recorded(told, mask)[1])
    assert masked("geheim", mask) == "***"


def test_a_fact_as_a_text() -> None:
    assert as_text(NEWER) is NEWER
    assert as_text(NextAction(ActionKind.STORE_START)) == "aiflow queue store start"
    assert (as_text(7), as_text(detail("prompt.not_text"))) == ("7", "a prompt must be UTF-8 text")


@pytest.mark.spec("ERR-2")
def test_an_errors_context_is_for_programs_and_what_it_says_is_for_people() -> None:
    error = ConflictError(reason_code="RUN_NOT_RESUMABLE", request_id="RQ-1", detail=NEWER)
    assert error_facts(error, JAPANESE)["detail"] == "RUN-1 より新しい RUN-2 があります"
    assert error_shape(error, JAPANESE)["error"]["context"]["detail"] == "RUN-2 is newer than RUN-1"
    told = error_shape(BadInputError(detail=detail("prompt.not_text")), JAPANESE)["error"]
    assert told["detail"].endswith(JAPANESE("prompt.not_text"))
    assert told["context"]["detail"] == "a prompt must be UTF-8 text"


# --- the house -------------------------------------------------------------------------------------------------------

# Where words for people are handed over: by these names, and to these.
NAMES = {"detail", "problem", "summary", "why", "refusal", "error_message", "how", "told"}
TAKERS = {
    *("AgentReply", "Decision", "Failure", "FlawError", "Refused", "RefusedError", "RunError", "Spoiled", "Trouble"),
    *(
        "_failed",
        "_failure",
        "_in_the_way",
        "_problem",
        "_refused",
        "_stop",
        "_why",
        "failure",
        "message_of",
        "refused",
    ),
}
# What is English on purpose.
ALLOWED = {
    # Said to the agent over the protocol, and in the log of its call; a person is shown a quotation of that.
    "adapters/agents/acp/permissions.py",
    "adapters/agents/acp/files.py",
    # Kept in a store that other programs of the same design read.
    "adapters/dynamo/queue/enqueue.py",
    # What an agent is told to answer.
    "domain/agents/answer_schema.py",
    # Words of npm's that are looked for.
    "adapters/dynamo/local/fetch.py: A complete log",
}


TO_THE_CATALOGUE = {"words", "detail", "texts", "shell"}


def _name(called: ast.AST) -> str | None:
    return getattr(called, "id", None) or getattr(called, "attr", None)


def sentences(node: ast.AST) -> Iterator[str]:
    """Every text with English words in an expression, those below a call that takes them to a catalogue apart."""
    if isinstance(node, ast.Call) and _name(node.func) in TO_THE_CATALOGUE:
        return
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        yield from [text] if re.search(r"[A-Za-z}]{2,}:? [a-z]{2,}|[a-z]{2,} [{]", text) else []
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from [node.value] if re.search(r"[A-Za-z]{2,} [a-z]{2,}", node.value) else []
        return
    for child in ast.iter_child_nodes(node):
        yield from sentences(child)


def handed_over(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from (each.value for each in node.keywords if each.arg in NAMES)
            yield from node.args if _name(node.func) in TAKERS else ()
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (value for key, value in pairs if isinstance(key, ast.Constant) and key.value in NAMES)
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2 and getattr(node.elts[0], "value", None) in NAMES:
            yield node.elts[1]
        elif isinstance(node, ast.Assign) and any(getattr(target, "id", None) in NAMES for target in node.targets):
            yield node.value


def test_no_sentence_for_a_person_stands_in_code() -> None:
    found = []
    used = set()
    for path in sorted((ROOT / "src/aiflow").rglob("*.py")):
        name = str(path.relative_to(ROOT / "src/aiflow"))
        if name.startswith("demo/"):
            continue
        texts = {text for node in handed_over(ast.parse(path.read_text(encoding="utf-8"))) for text in sentences(node)}
        known = {allowed for allowed in ALLOWED if allowed == name or allowed in {f"{name}: {each}" for each in texts}}
        used |= known if texts else set()
        found += [(name, text) for text in sorted(texts) if name not in known and f"{name}: {text}" not in known]
    assert found == []
    assert used == ALLOWED, "what is allowed and does not occur hides nothing: take it out"
