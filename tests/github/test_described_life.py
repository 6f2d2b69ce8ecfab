"""One whole life of an issue by GitHub's own description (ISS-1 to ISS-11): the real bodies of both directions.

The real use cases and the real source, in memory, behind Prism: each call and each answer of the life is held against the
description, and the life is to make every kind of call that aiflow knows but those of a GitHub App.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aiflow.domain.health import Health
from aiflow.domain.issues.marks import find_mark
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.request import RequestStatus
from aiflow.messages import Texts
from aiflow.usecases.issues.check_issues import IssueLook, check_issues
from aiflow.usecases.issues.labels import make_labels
from aiflow.usecases.runs.accept import accept_run
from github.hub import HookRow
from github.routes import ROUTES
from github.scene import RUNNER, Scene
from github.shop import Shop

SETTINGS: dict[str, bool | str] = {
    "git.push": True,
    "github.pull_request": True,
    "github.accept_closes": True,
    "github.service_account": RUNNER,
}
# What only a GitHub App asks: `test_app.py` has it.
OF_AN_APP = {key for key in ROUTES if key[1].startswith("/app") or key[1].endswith("/installation")}


@pytest.fixture
def shop(scene: Scene, tmp_path: Path) -> Shop:
    return Shop(scene, tmp_path / "here", SETTINGS)


def examined(shop: Shop) -> set[Health]:
    """Have the doctor look, as one who is shown webhooks."""
    at = shop.hub.now()
    deliveries = [(1, "issues", at, 200), (2, "issue_comment", at, 502)]
    shop.hub.hooks.append(HookRow(31, "https://aiflow.example/hook", ["issues"], deliveries=deliveries))
    shop.hub.person(RUNNER, "admin")
    look = IssueLook(lambda: shop.client, shop.time.now, "token", lambda: 1, has_secret=True)
    return {finding.health for finding in check_issues(shop.checkout.settings, look, shop.texts)}


def stopped(shop: Shop) -> int:
    """Have a run that asks something, on an issue with much talk, blockers and a priority."""
    first, number = shop.hub.open_issue("First"), shop.hub.open_issue("Say hello", "日本語 & <b>bold</b>\n\nPlease.")
    shop.hub.label(number, "P1", "maya")
    shop.hub.block(number, first)
    shop.hub.close(first, "maya", "not_planned")
    for at in range(120):
        shop.hub.comment(number, f"comment {at}", "rita")
    shop.time.sleep(5)
    shop.hub.label(number, "agent:queued", "maya")
    shop.question = "Which colour?\n/retry red"
    assert shop.work(number).outcome is RunOutcome.NEEDS_INPUT
    shop.question = ""
    shop.look()
    return number


def asked(shop: Shop, number: int, text: str, by: str = "maya") -> None:
    shop.time.sleep(60)
    shop.hub.comment(number, text, by)


def kinds(shop: Shop, number: int) -> list[str]:
    """Return the kinds of aiflow's comments."""
    marks = (find_mark(comment.body) for comment in shop.hub.rows[number].comments)
    return [mark.kind.value for mark in marks if mark is not None]


def called(shop: Shop) -> set[tuple[str, str]]:
    """Return the routes that were called."""
    return {
        next(key for key in ROUTES if key[0] == ask.method and re.fullmatch(key[1], ask.path))
        for ask in shop.scene.api.calls
    }


@pytest.mark.contract
@pytest.mark.spec("ISS-1", "ISS-3", "ISS-5", "ISS-6", "ISS-9")
@pytest.mark.parametrize("way", ["prism"], indirect=True)
def test_a_whole_life_keeps_to_githubs_description_in_both_directions(shop: Shop) -> None:
    hub = shop.hub
    assert {is_made for _, is_made in make_labels(shop.client, Texts("ja"))} == {True}
    number = stopped(shop)
    assert (shop.request(number).status, hub.rows[number].label_names()) == (
        RequestStatus.BLOCKED,
        ["P1", "agent:blocked"],
    )
    hub.comment(number, shop.said(number), RUNNER)  # the same again: it goes
    asked(shop, number, "/retry", "rita")
    asked(shop, number, "/status")
    shop.look()
    assert kinds(shop, number) == ["run-header", "progress", "blocked", "refusal", "note"]
    asked(shop, number, "/retry red")
    assert shop.work(number).outcome is RunOutcome.AWAITING_ACCEPTANCE
    asked(shop, number, "/retry in UTC")
    run = shop.work(number)
    assert [pull.is_open for pull in hub.pulls] == [False, True]
    assert examined(shop) == {Health.PASS, Health.WARN}
    accept_run(shop.engine, run)
    shop.look()
    row = hub.rows[number]
    assert (row.is_open, row.reason, row.label_names(), shop.quiet()) == (False, "completed", ["P1"], True)
    assert shop.request(number).status is RequestStatus.DONE
    assert set(ROUTES) - called(shop) == OF_AN_APP
