"""Branches and pull requests of finished issues (ISS-9): one that is open at a time, whatever is lost on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from aiflow.domain.issues.commands import find_commands
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.request import RequestStatus
from aiflow.errors import AiflowError
from aiflow.usecases.runs.accept import accept_run
from github.scene import Scene
from github.shop import Shop

PULLS: dict[str, bool | str] = {"git.push": True, "github.pull_request": True}
Open = Callable[..., Shop]


@pytest.fixture
def open_shop(scene: Scene, tmp_path: Path) -> Open:
    return lambda name="here", **settings: Shop(scene, tmp_path / name, settings)


@pytest.fixture
def shop(open_shop: Open) -> Shop:
    return open_shop(**PULLS)


def retried(shop: Shop, number: int) -> None:
    shop.time.sleep(60)
    shop.hub.comment(number, "/retry in UTC", "maya")
    shop.work(number)


@pytest.mark.spec("ISS-9")
def test_a_result_names_the_page_that_compares_a_branch_only_if_it_was_pushed(open_shop: Open) -> None:
    pushing, keeping = open_shop("pushing", **{"git.push": True}), open_shop("keeping")
    number, run = pushing.finished()
    assert run.compare_url is not None
    assert f"Changes: {run.compare_url}" in pushing.said(number)
    number, run = keeping.finished()
    assert "compare" not in keeping.said(number)
    assert "The branch is not on GitHub: it is in the checkout" in keeping.said(number)
    assert f"`{run.place.branch}`" in keeping.said(number)


@pytest.mark.spec("ISS-9", "ERR-1")
def test_a_push_that_fails_is_told_with_its_reason_and_the_result_is_shown(shop: Shop) -> None:
    shop.remote.problem = "! [remote rejected] by @maya: Closes #1"
    number, run = shop.finished()
    assert (run.outcome, run.warnings[-1]) == (RunOutcome.AWAITING_ACCEPTANCE, "PUSH_FAILED")
    said = shop.said(number)
    assert "pushing it failed: GIT_FAILED: ! [remote rejected] by @\u2060maya" in said
    assert "No pull request: The branch could not be pushed · `PUSH_FAILED`" in said
    assert "compare" not in said
    assert shop.hub.pulls == []
    assert "! [remote rejected] by @maya" in (shop.engine.runs.report(run) or "")
    assert shop.quiet()


@pytest.mark.spec("ISS-9")
def test_a_finished_run_opens_one_pull_request_that_says_what_it_is(shop: Shop) -> None:
    other = shop.hub.open_issue("Another one")
    shop.summary = f"Done.\n/cancel\n@maya see\nFixes #{other}, closes: octo/demo#{other} and Resolves\nGH-{other}"
    number, run = shop.finished(f"Fix #{other} for @maya")
    [pull] = shop.hub.pulls
    assert (pull.head, pull.base) == (run.place.branch, "main")
    assert pull.body.startswith(f"Closes #{number}\n")
    assert "S01" in pull.body
    assert f"aiflow accept GH-{number}" in pull.body
    assert "> Done." in pull.body
    assert "@maya" not in f"{pull.title}{pull.body}"
    assert find_commands(pull.body.partition("<!--")[0]) == ()
    url = f"https://github.com/octo/demo/pull/{pull.number}"
    assert f"Pull request: {url}" in shop.said(number)
    assert "merge the pull request" in shop.said(number)
    assert shop.now(run).pull_url == url
    assert url in (shop.engine.runs.report(run) or "")
    assert shop.quiet()
    shop.hub.merge_pull(pull.number, "maya")
    assert [row.is_open for row in (shop.hub.rows[other], shop.hub.rows[number])] == [True, False]


@pytest.mark.spec("ISS-9")
def test_no_commit_of_an_issue_closes_another_one(shop: Shop) -> None:
    shop.summary = "Fixes #8"
    number, run = shop.finished("Fix #7")
    accept_run(shop.engine, run)
    repository = shop.checkout.repository
    work = repository.commits[repository.refs[f"refs/heads/{run.place.branch}"]].message
    merge = repository.commits[shop.checkout.base].message
    assert ("Fixes #\u20608" in work, "Fix #\u20607" in merge) == (True, True)
    assert f"Aiflow-Request: GH-{number}" in work


@pytest.mark.spec("ISS-9", "ISS-6")
def test_a_retry_opens_the_new_pull_request_before_it_closes_the_old_one(shop: Shop) -> None:
    number, first = shop.finished()
    [old] = shop.hub.pulls
    before: list[tuple[int, int]] = []
    shop.scene.api.before = lambda ask: before.append((len(shop.hub.pulls), len(shop.hub.open_pulls())))
    retried(shop, number)
    [_, new] = shop.hub.pulls
    assert (old.is_open, new.is_open) == (False, True)
    assert (1, 0) not in before
    [word] = shop.hub.rows[old.number].comments
    assert f"see https://github.com/octo/demo/pull/{new.number}" in word.body
    assert shop.now(first).outcome is RunOutcome.SENT_BACK
    assert shop.quiet()


@pytest.mark.spec("ISS-4", "ISS-9")
@pytest.mark.parametrize(
    ("how", "where"),
    [
        ("lost", r"POST .*/pulls$"),
        ("lost", r"POST .*/issues/1/comments"),
        ("lost", r"POST .*/issues/2/comments"),
        ("lost", r"PATCH .*/pulls/2$"),
        ("no answer", r"GET .*/pulls$"),
        ("no answer", r"POST .*/pulls$"),
        ("no answer", r"POST .*/issues/1/comments"),
        ("not sent", r"GET .*/issues/2/comments"),
        ("not sent", r"PATCH .*/pulls/2$"),
    ],
)
def test_whatever_is_lost_there_is_one_open_pull_request_in_the_end(shop: Shop, how: str, where: str) -> None:
    number, _ = shop.finished()
    faults = {
        "lost": lambda: shop.scene.api.loses(where, times=2),
        "no answer": lambda: shop.scene.api.answers(where, 502, times=5),
        "not sent": lambda: shop.scene.api.unsent(where, times=5),
    }
    shop.remote.pushed = faults[how]
    retried(shop, number)
    for _ in range(3):
        with contextlib.suppress(AiflowError):  # the watch tells, and looks again
            shop.look()
    shop.scene.api.faults.clear()
    shop.look()
    assert shop.quiet()
    assert [pull.is_open for pull in shop.hub.pulls] == [False, True]
    assert len(shop.hub.rows[shop.hub.pulls[0].number].comments) == 1
    results = [each.body for each in shop.hub.rows[number].comments if "aiflow finished" in each.body]
    assert len(results) == 2
    assert f"/pull/{shop.hub.pulls[1].number}" in results[1]


@pytest.mark.spec("ISS-9", "ERR-1")
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (
            "rights",
            "No pull request: The token does not allow this on GitHub (Resource not accessible) · `GITHUB_RIGHTS`",
        ),
        ("empty", "No pull request: GitHub refused the call (Validation Failed: No commits between main and"),
        ("base", "No pull request: GitHub refused the call (Validation Failed: head invalid) · `GITHUB_REFUSED`"),
    ],
)
def test_a_pull_request_that_github_refuses_is_told_in_the_result(shop: Shop, fault: str, told: str) -> None:
    if fault == "rights":
        shop.scene.api.answers(r"POST .*/pulls$", 403, message="Resource not accessible")
    elif fault == "base":
        shop.hub.branches.discard("main")
    else:
        shop.remote.pushed = lambda: shop.hub.empty.update(shop.hub.branches - {"main"})
    number, run = shop.finished()
    assert told in shop.said(number)
    assert (shop.hub.pulls, run.outcome) == ([], RunOutcome.AWAITING_ACCEPTANCE)
    assert shop.quiet()


@pytest.mark.spec("ISS-9")
def test_without_push_the_result_says_that_a_pull_request_needs_it(open_shop: Open) -> None:
    shop = open_shop(**{"github.pull_request": True})
    number, _ = shop.finished()
    assert "No pull request: No pull request without a push · `PULL_NEEDS_PUSH`" in shop.said(number)
    assert not [ask for ask in shop.scene.api.calls if "/pulls" in ask.path]


@pytest.mark.spec("ISS-9", "ISS-4")
@pytest.mark.parametrize("meanwhile", ["closed by a person", "not listed yet"])
def test_one_that_was_opened_before_the_result_could_be_written_is_the_one(shop: Shop, meanwhile: str) -> None:
    number = shop.queued()
    api = shop.scene.api
    api.before = lambda ask: (
        api.answers("POST .*/issues/1/comments", 502, times=9)
        if (ask.method, ask.path[-6:]) == ("POST", "/pulls")
        else None
    )
    shop.work(number)
    [pull] = shop.hub.pulls
    assert "aiflow finished" not in shop.said(number)
    api.faults.clear()
    api.before = lambda _ask: None
    if meanwhile == "closed by a person":
        shop.hub.close_pull(pull.number, "maya")
    else:
        shop.hub.lag_pulls = 1
    shop.look()
    assert f"/pull/{pull.number}" in shop.said(number)
    assert shop.hub.pulls == [pull]
    assert shop.quiet()


@pytest.mark.spec("ISS-9", "GIT-5")
def test_a_merge_on_github_accepts_the_run_and_its_worktree_goes(shop: Shop) -> None:
    number, run = shop.finished()
    assert run.place.path in shop.checkout.repository.worktrees
    shop.hub.merge_pull(shop.hub.pulls[0].number, "maya", commit="c" * 40)
    assert shop.request(number).status is RequestStatus.BLOCKED
    shop.look()
    assert shop.request(number).status is RequestStatus.DONE
    merged = shop.now(run)
    assert (merged.outcome, merged.accepted_as) == (RunOutcome.ACCEPTED, "c" * 40)
    assert run.place.path not in shop.checkout.repository.worktrees
    assert "Accepted on GitHub: https://github.com/octo/demo/pull/2 merged into main" in (
        shop.engine.runs.report(run) or ""
    )
    assert shop.hub.rows[number].label_names() == []
    assert shop.said(number).startswith("**Accepted**")
    assert shop.quiet()


@pytest.mark.spec("ISS-9")
def test_an_issue_that_is_closed_without_a_merge_is_asked_about_once(shop: Shop) -> None:
    number, run = shop.finished()
    shop.time.sleep(60)
    shop.hub.close(number, "maya")
    shop.look()
    assert shop.request(number).status is RequestStatus.DONE
    assert shop.now(run).outcome is RunOutcome.AWAITING_ACCEPTANCE
    shop.scene.api.calls.clear()
    assert shop.quiet()
    assert not [ask for ask in shop.scene.api.calls if "/pulls" in ask.path]
    assert [pull.is_open for pull in shop.hub.pulls] == [True]


@pytest.mark.spec("ISS-4", "ISS-6")
def test_a_pull_request_goes_with_the_run_that_came_behind_it_in_another_checkout(open_shop: Open) -> None:
    here, there = open_shop("here", **PULLS), open_shop("there", **PULLS)
    number, first = here.finished()
    there.look()
    retried(there, number)
    here.look()
    assert [pull.is_open for pull in here.hub.pulls] == [False, True]
    assert here.request(number).run_elsewhere is not None
    assert here.quiet()
    assert there.quiet()
    assert here.now(first).outcome is RunOutcome.SENT_BACK or here.now(first).outcome is RunOutcome.AWAITING_ACCEPTANCE
