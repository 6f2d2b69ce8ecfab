"""Advice on a page (DESIGN §5, ERR-1): a link where a page does it, a command to copy where only a terminal can."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.cli.main import COMMANDS
from aiflow.domain.next_action import NOT_TYPED, ActionKind, NextAction, shell
from aiflow.domain.reasons import CATALOGUE
from aiflow.messages import Texts
from aiflow.messages.advice import ADVISED, Advice
from aiflow.web.advice import PLACES, Piece, advice_pieces, piece_of
from e2e.bench import Bench
from run_page_runs import REQUESTS, path_of, write_run
from server_yard import Served, served
from web_yard import WebBench

pytestmark = pytest.mark.spec("WEB-1", "ERR-1")
FACTS = {"request_id": "RQ-1", "run_id": "RUN-1", "task_id": "T-1", "branch": "aiflow/x", "path": "a.md"}
RUNS = {"RQ-1": "RUN-1"}
# What only a terminal can do. A new kind of action has its place on a page, or belongs here.
TYPED = {
    *(ActionKind.INIT, ActionKind.DEMO, ActionKind.UP, ActionKind.OPEN, ActionKind.SESSIONS, ActionKind.RUNNER),
    *(ActionKind.SERVICE_INSTALL, ActionKind.SERVICE_STATUS, ActionKind.QUEUE_ADD, ActionKind.SHELL),
    *(ActionKind.ISSUES_SYNC, ActionKind.ISSUES_LABELS, ActionKind.AT_GITHUB),
    *(ActionKind.STORE_START, ActionKind.STORE_STATUS, ActionKind.STORE_LOGS, ActionKind.STORE_ROTATE_KEY),
}
AT_A_TERMINAL = re.compile(
    rf"\baiflow ({'|'.join(COMMANDS)})(?![\w-])|(?<![\w-])--?[a-z]|AIFLOW_\w+="
    r"|\b(run|type|enter) (it|this|the)\b.*\b(command|again)|command that|コマンドを|もう一度実行|実行し直"
)


def advised(code: str, language: str) -> tuple[tuple[Piece, ...], ...]:
    texts = Texts(language)
    return advice_pieces(texts.message(code, FACTS).actions, texts, RUNS)


def test_every_kind_of_action_is_done_on_a_page_or_in_a_terminal() -> None:
    assert set(ActionKind) - set(PLACES) == TYPED
    for action in (NextAction(kind, "RQ-1") for kind in ActionKind if kind not in NOT_TYPED):
        piece = piece_of(action, Texts("en"), RUNS)
        assert bool(piece.href) is (action.kind not in TYPED)
        assert piece.is_command is (action.kind in TYPED)


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("code", CATALOGUE)
def test_no_reason_tells_who_is_at_a_page_to_type_what_a_page_does(code: str, language: str) -> None:
    for pieces in advised(code, language):
        assert pieces
        for piece in pieces:
            if piece.is_command:
                program, *words = piece.words.split()
                words = words[1:] if words[:2] == ["queue", "store"] else words
                named = {"_".join(words[:count]).replace("-", "_") for count in (1, 2)}
                is_ours = program == "aiflow" and not {"-c", "break", "--check"} & set(words)
                assert not is_ours or named & {kind.value for kind in TYPED}, piece
            else:
                plain = re.sub(r"`[^`]*…[^`]*`", "", piece.words)  # an example that nobody copies
                assert not AT_A_TERMINAL.search(plain), piece
                assert not re.search(r"`[a-z]+ [^`]+`", plain), piece  # a command is copied


@pytest.mark.parametrize("language", ["en", "ja"])
def test_every_link_leads_to_a_page(web: WebBench, bench: Bench, language: str) -> None:
    bench.run()
    runs = {"RQ-1": bench.run_ids()[0]}
    texts = Texts(language)
    found = {
        piece.href
        for code in CATALOGUE
        for pieces in advice_pieces(texts.message(code, FACTS).actions, texts, runs)
        for piece in pieces
        if piece.href
    }
    found |= {piece_of(NextAction(kind, "RQ-1"), texts, runs).href for kind in PLACES}
    assert len(found) > 15
    for path in sorted(found):
        assert "<h1" in web.page(path, language=language), path


def test_words_before_one_action_are_its_link_and_others_stand_in_the_sentence() -> None:
    texts = Texts("en")
    link, between, typed = advice_pieces(
        (
            Advice(("See it: ", NextAction(ActionKind.LOGS, "RQ-1"))),
            Advice(("Look with ", NextAction(ActionKind.LIST), ", then `git status`")),
            Advice((NextAction(ActionKind.RESUME, "RQ-1").having(setting="agent.kind=demo"),)),
        ),
        texts,
        RUNS,
    )
    assert link == (Piece("See it", "/requests/RQ-1/runs/RUN-1?view=log"),)
    assert between == (
        Piece("Look with "),
        Piece("Backlog", "/backlog"),
        Piece(", then "),
        Piece("git status", is_command=True),
    )
    assert typed == (Piece("aiflow -c agent.kind=demo resume RQ-1", is_command=True),)
    assert advice_pieces((Advice(("Set AIFLOW_DEBUG=1",), "terminal"),), texts, {}) == ()


def test_what_nobody_knows_the_run_of_leads_to_its_request_or_to_the_list() -> None:
    texts = Texts("en")
    resume = NextAction(ActionKind.RESUME, "要望-1")
    assert piece_of(resume, texts, {}).href == "/requests/%E8%A6%81%E6%9C%9B-1"
    assert piece_of(ADVISED["resume.any"], texts, {}).href == "/backlog"
    [unknown] = texts.message("NOT_READY", {}).actions[0].steps
    assert piece_of(unknown, texts, {}).href == "/backlog"
    assert piece_of(shell("git status"), texts, {}) == Piece("git status", is_command=True)


@pytest.fixture
def up(repository: Path) -> Iterator[Served]:
    with served(repository, auth="none") as given:
        yield given


@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_refusal_has_links_and_no_commands(up: Served, language: str) -> None:
    write_run(Path(up.server.record.root), "retried_out")
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": up.origin, "HX-Request": "true"}
    headers |= {"Cookie": f"aiflow_lang={language}"}
    told = up.call("POST", f"{path_of('retried_out')}/resume", headers, b"mode=sudo")
    assert told.reason == "INPUT_INVALID"
    text = told.body.decode()
    assert '<li><a class="link" href="/backlog">' in text
    assert "aiflow" not in text
    told = up.call("GET", "/requests/GONE", headers)
    assert told.reason == "REQUEST_NOT_FOUND"
    assert 'href="/new">' in told.body.decode()
    told = up.call("GET", f"{path_of('retried_out')[:-6]}bbbbbb/cancel", headers)
    assert told.reason == "RUN_NOT_FOUND"
    assert f'href="/requests/{REQUESTS["retried_out"]}' in told.body.decode()
