"""No word of a prompt depends on the language of aiflow's user (AGT-1): a whole run, in English and in Japanese."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from aiflow.adapters.agents.call.prompts import prompt_for
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.agents.document import document
from aiflow.domain.lifecycle import RunState
from aiflow.messages import Texts
from aiflow.usecases.engine import Voice
from aiflow.usecases.runs.accept import LineComment, send_back, whole_comment
from aiflow.usecases.runs.start import start_run
from told_scene import PASSED, Scene

BODY = "\n<!-- hidden -->\n## Acceptance\n\n- It greets\n- An entry in CHANGES.md\n"
SKIPS = AgentReply(b'{"verdict":"pass","criteria":[{"number":1,"met":true}]}')
FAILS = AgentReply(b'{"verdict":"fail","findings":[]}')
UNMET = AgentReply(b'{"verdict":"pass","criteria":[{"number":1,"met":true},{"number":2,"met":false}]}')
SPOILED = AgentReply(b'{"status":"perhaps"}')


class Spoiling(Scene):
    """The same, with two answers at first that nobody can use."""

    spoiled = 2

    def script(self, call: AgentCall, output: Callable[[bytes], None], should_stop: Any) -> AgentReply:
        if not self.spoiled or call.role is Role.QA:
            return super().script(call, output, should_stop)
        self.spoiled -= 1
        self.calls.append(call)
        return SPOILED


def told_in(language: str) -> tuple[list[str], list[str]]:
    """Everything that the agents of a run and of the next one, which continues it, are told; and how the runs ended."""
    scene = Spoiling({"tests.unit": "make unit", "limits.role_attempts": 5, "language": language})
    scene.exit_codes = [1, 0]
    scene.verdicts = [FAILS, PASSED, SPOILED, SKIPS, UNMET, PASSED]
    engine = scene.engine(voice=Voice(Texts(language)))
    request_id = scene.checkout.add("RQ-1")
    scene.checkout.requests.texts[request_id] += BODY
    run = start_run(engine, request_id)
    send_back(engine, run, whole_comment(run, "Rhyme.", [LineComment("S01.txt", 1, "Here.")]))
    repository = scene.checkout.repository
    files = {**repository.files_of(scene.checkout.base), "S01.txt": b"theirs\n"}
    commit = repository.make_commit(repository.keep_tree(files), (scene.checkout.base,), "By hand\n")
    repository.refs["refs/heads/main"] = commit
    again = start_run(engine, request_id)
    prompts = [prompt_for(call, goes_on=goes_on) for call in scene.calls for goes_on in (False, True)]
    told = [*prompts, *(json.dumps(document(call), ensure_ascii=False) for call in scene.calls)]
    # Below this heading the person's comment stands in their own file, which is theirs to word.
    heading = Texts(language)("send_back.heading", date="2026-01-02")
    assert any(heading in each for each in told)
    return [each.replace(heading, "(heading)") for each in told], [run.state, again.state]


@pytest.mark.spec("AGT-1", "AGT-2")
def test_whoever_reads_aiflow_in_japanese_has_agents_that_are_told_the_same() -> None:
    english, ended = told_in("en")
    assert ended == [RunState.DONE] * 2
    everything = "\n".join(english)
    for code in ("JSON_SCHEMA_INVALID", "UNIT_TEST_FAILED", "QA_REJECTED", "SENT_BACK", "MERGE_CONFLICT"):
        assert f"{code}: " in everything, code
    assert "criteria` says nothing of" in everything
    assert "Acceptance criterion not met" in everything
    assert "no findings were given" in everything
    assert told_in("ja") == (english, ended)
