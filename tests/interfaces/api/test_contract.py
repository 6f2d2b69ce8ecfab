"""Everything that the OpenAPI document allows, and much that it does not: each answer is one that it names (API-2).

`make test-contract` runs it with few examples, `make test-soak` with many.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CheckContext, not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from api_bench import PORT, ApiBench
from dynamo import Dynamo
from e2e.bench import Bench
from forms import rounds

pytestmark = [pytest.mark.contract, pytest.mark.timeout(1800)]

# What may be missing on a machine, or take too long there; each is documented where it can be answered.
SERVER_TROUBLE = (503, 504, 507)
# What is wrong is refused, be it that it is too large.
REFUSED = {"expected-statuses": ["4xx", *map(str, SERVER_TROUBLE)]}
CONFIG = SchemathesisConfig.from_dict({"checks": {"negative_data_rejection": REFUSED}})
FEW = settings(
    max_examples=rounds(8, 400),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)


def no_defect(ctx: CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]) -> None:
    """Refuse an answer that is aiflow's own defect, or that trouble of the machine which nothing here has."""
    assert response.status_code < 500 or response.status_code in SERVER_TROUBLE, response.text


@pytest.fixture(scope="module")
def api(
    tmp_path_factory: pytest.TempPathFactory, dynamo_endpoint: str, request: pytest.FixtureRequest
) -> Iterator[ApiBench]:
    """Give a checkout with requests, finished and stopped runs, and a store that answers."""
    import fresh_git

    folder = tmp_path_factory.mktemp("contract")
    root = folder / "repository"
    root.mkdir()
    fresh_git.make_repository(root)
    bench = Bench(root, folder)
    bench.aiflow.environ |= Dynamo(dynamo_endpoint).environ
    fill(bench)
    with pytest.MonkeyPatch.context() as patch:
        made = ApiBench(bench, patch)
        yield made
        made.close()
    bench.close()


def fill(bench: Bench) -> None:
    """Make a backlog in which there is something of everything."""
    for name, keys in {
        "RQ-2": {},
        "RQ-3": {"depends_on": "[RQ-2]"},
        "RQ-4": {"status": "draft"},
        "RQ-5": {"priority": "P9"},
    }.items():
        bench.add_request(name, **keys)
    bench.commit()
    bench.run("RQ-1")
    bench.agent.does("implementer", "ask('Which one?')")
    bench.run("RQ-2", code=5)
    bench.agent.forget()


def headers_of(api: ApiBench) -> dict[str, str]:
    return {"Authorization": f"Bearer {api.token}", "Host": f"127.0.0.1:{PORT}"}


@pytest.mark.spec("API-2", "ERR-2")
@pytest.mark.parametrize("mode", [*GenerationMode])
@pytest.mark.parametrize("is_question", [True, False])
def test_every_call_is_answered_as_the_document_says(api: ApiBench, is_question: bool, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_asgi("/openapi.json", api.app, config=CONFIG, headers=headers_of(api))
    asked = 0
    for found in schema.exclude(path="/api/events").get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        if (operation.method.upper() == "GET") is is_question and can_be(operation, mode):
            ask_again_and_again(api, operation, mode)
            asked += 1
    assert asked > 5


def can_be(operation: Any, mode: GenerationMode) -> bool:
    """Tell whether there is anything to be wrong about in a call."""
    return mode is GenerationMode.POSITIVE or bool(operation.body or operation.path_parameters or operation.query)


def ask_again_and_again(api: ApiBench, operation: Any, mode: GenerationMode) -> None:
    @FEW
    @given(operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case[Any]) -> None:
        # What is led to something that exists may be right again. As a label or a name every text is right, and a list
        # of one text is sent as that text.
        may_be_right = lead(case, api.bench, mode) or bool({"label", "request_id", "run_id"} & set(case.query or {}))
        left_out = [negative_data_rejection] if may_be_right else []
        case.call_and_validate(
            headers=headers_of(api),
            additional_checks=[no_defect],
            excluded_checks=[not_a_server_error, positive_data_acceptance, *left_out],
        )

    ask()
    come_to_rest(api)


def come_to_rest(api: ApiBench) -> None:
    """End what was started, so that what is asked next is not refused for that alone."""
    worker = api.server.work.current
    if worker is not None and api.server.work.workers.exit_code(worker) is None:
        os.kill(worker.pid, signal.SIGTERM)
        api.until_idle()


def lead(case: schemathesis.Case[Any], bench: Bench, mode: GenerationMode) -> bool:
    """Let every other call be about something that exists, and tell whether it is: by chance alone none would be."""
    if case.operation.label == "POST /api/tasks" and mode is GenerationMode.POSITIVE and isinstance(case.body, dict):
        abouts: list[dict[str, Any]] = [{"prompt": "Say hello"}, {"request_id": "RQ-4"}, {"auto": True}]
        case.body = abouts[len(case.body) % 3] | {
            key: value for key, value in case.body.items() if key in ("priority", "watch")
        }
    given_ids = case.path_parameters or {}
    is_chosen = bool(sum(map(ord, str(sorted(given_ids.items())))) % 2) and "request_id" in given_ids
    if is_chosen:
        number = sum(map(ord, str(given_ids["request_id"]))) % 5 + 1
        given_ids["request_id"] = f"RQ-{number}"
        if "run_id" in given_ids:
            given_ids["request_id"] = f"RQ-{number % 2 + 1}"
            given_ids["run_id"] = bench.run_ids(given_ids["request_id"])[-1]
        if "number" in given_ids and mode is GenerationMode.POSITIVE:
            given_ids["number"] = number % 3
    return is_chosen
