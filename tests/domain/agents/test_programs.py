"""The agents aiflow knows (AGT-1): which is chosen, who uses which, and what mends each trouble."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.programs import (
    KINDS,
    KNOWN,
    AgentProgram,
    AgentTrouble,
    Login,
    advice_facts,
    choose,
    code_of_call,
    with_roles,
)
from aiflow.domain.reasons import CATALOGUE, ExitCode, exit_code
from aiflow.settings import BY_NAME

HERE = [AgentProgram(known.kind, known.name, known.argv, f"/bin/{known.name}", login=Login.IN) for known in KNOWN]
CLAUDE, CODEX, OPENCODE, GEMINI = HERE


def gone(program: AgentProgram) -> AgentProgram:
    return replace(program, path=None, trouble=AgentTrouble.NOT_ON_PATH, login=Login.UNKNOWN)


@pytest.mark.spec("AGT-1")
def test_the_kinds_are_those_of_the_settings() -> None:
    assert BY_NAME["agent.kind"].choices == KINDS
    assert {known.kind for known in KNOWN} == set(KINDS) - {"command", "demo"}


@pytest.mark.spec("AGT-1")
@pytest.mark.parametrize("first", range(len(HERE)))
def test_a_new_project_gets_the_first_that_is_installed(first: int) -> None:
    found = [*map(gone, HERE[:first]), *HERE[first:]]
    assert choose(found) == HERE[first]


@pytest.mark.spec("AGT-1")
def test_one_that_seems_logged_out_is_chosen_only_if_there_is_no_other() -> None:
    out = [replace(program, login=Login.NONE_SEEN) for program in HERE]
    assert choose([out[0], CODEX]) == CODEX
    assert choose([replace(CLAUDE, login=Login.UNKNOWN), CODEX]) == replace(CLAUDE, login=Login.UNKNOWN)
    assert choose(out) == out[0]
    assert choose([*map(gone, HERE)]) is None
    assert choose([AgentProgram("demo", ""), AgentProgram("command", "./mine", path="/mine")]) is None


@pytest.mark.spec("AGT-1")
def test_every_program_is_listed_once_with_the_roles_that_use_it() -> None:
    own = AgentProgram("command", "./mine", ("./mine", "-v"), "/p/mine")
    survey = (*HERE, AgentProgram("command", "", trouble=AgentTrouble.NO_ARGV), AgentProgram("demo", ""))
    rows = with_roles(survey, [(Role.PLANNER, CLAUDE), (Role.IMPLEMENTER, own), (Role.QA, CLAUDE)])
    assert [(row.kind, row.program) for row in rows] == [
        ("claude-code", "claude"),
        ("codex", "codex"),
        ("acp", "opencode"),
        ("acp", "gemini"),
        ("command", "./mine"),
        ("demo", ""),
    ]
    assert rows[0].roles == (Role.PLANNER, Role.QA)
    assert rows[4] == replace(own, roles=(Role.IMPLEMENTER,))
    assert all(row.roles == () for row in (*rows[1:4], rows[5]))
    assert with_roles(survey, []) == survey


@pytest.mark.spec("AGT-1")
def test_what_a_role_starts_a_known_program_with_is_kept() -> None:
    own = replace(OPENCODE, argv=("opencode", "acp", "--print-logs"))
    [row] = [row for row in with_roles(HERE, [(Role.QA, own)]) if row.roles]
    assert row.argv == own.argv


@pytest.mark.spec("AGT-1", "DOC-1")
@pytest.mark.parametrize("trouble", AgentTrouble)
def test_every_trouble_is_one_of_the_environment(trouble: AgentTrouble) -> None:
    assert trouble.reason_code in CATALOGUE
    assert exit_code(trouble.reason_code) == ExitCode.ENVIRONMENT


@pytest.mark.spec("DOC-1")
def test_what_mends_it() -> None:
    assert CODEX.mending is None
    assert gone(CODEX).mending == "npm install -g @openai/codex"
    assert replace(CODEX, trouble=AgentTrouble.LOGGED_OUT).mending == "codex login"
    assert replace(CLAUDE, login=Login.NONE_SEEN).mending == "claude auth login"
    lacking = replace(OPENCODE, trouble=AgentTrouble.NO_EXTRA, extra_install="uv tool install it")
    assert lacking.mending == "uv tool install it"
    assert AgentProgram("command", "./mine", trouble=AgentTrouble.MISSING).mending is None
    assert replace(CODEX, program="/opt/bin/codex").known == CODEX.known
    assert replace(CODEX, kind="command").known is None


def test_a_variable_that_is_missing_is_no_matter_of_logging_in() -> None:
    provider = replace(CODEX, login=Login.NONE_SEEN, login_by="MY_KEY")
    assert (provider.missing_variable, provider.mending) == ("MY_KEY", None)
    assert advice_facts(provider, "AGENT_AUTH_REQUIRED") == (("variable", "MY_KEY"),)
    assert replace(CODEX, login=Login.IN, login_by="MY_KEY").missing_variable == ""
    assert replace(CODEX, login=Login.NONE_SEEN).missing_variable == ""


def test_a_call_of_a_program_that_is_logged_out_failed_for_that() -> None:
    out = replace(CODEX, trouble=AgentTrouble.LOGGED_OUT)
    assert code_of_call(out, "AGENT_FAILED") == "AGENT_AUTH_REQUIRED"
    assert code_of_call(out, "AGENT_TIMEOUT") == "AGENT_TIMEOUT"
    assert code_of_call(out, None) is None
    assert code_of_call(CODEX, "AGENT_FAILED") == "AGENT_FAILED"
