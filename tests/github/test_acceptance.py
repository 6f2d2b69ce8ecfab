"""Accepting an issue's run, sending it back, cancelling it (ISS-9, ISS-4): from here, and shown on the issue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aiflow.domain.backlog.selection import find_barrier
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.errors import AiflowError, ConflictError
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.runs.accept import accept_run, send_back
from aiflow.usecases.runs.cancel import cancel_run
from aiflow.usecases.runs.start import start_run
from aiflow.usecases.runs.update import accept_updated
from github.scene import Scene
from github.shop import Shop

CLOSES: dict[str, bool | str] = {"github.accept_closes": True}
PULLS: dict[str, bool | str] = {"git.push": True, "github.pull_request": True}
Open = Callable[..., Shop]


@pytest.fixture
def open_shop(scene: Scene, tmp_path: Path) -> Open:
    return lambda name="here", **settings: Shop(scene, tmp_path / name, settings)


def labels(shop: Shop, number: int) -> list[str]:
    return shop.hub.rows[number].label_names()


def kept(shop: Shop, number: int) -> str | None:
    request = shop.request(number)
    return request.kept.reason_code if request.kept else None


@pytest.mark.spec("ISS-9", "REQ-6")
def test_accept_merges_and_the_issue_waits_for_its_end_as_do_others(open_shop: Open) -> None:
    shop = open_shop()
    number, run = shop.finished()
    waiting = shop.hub.open_issue("Next", f"Depends on #{number}")
    shop.hub.label(waiting, "agent:queued", "maya")
    accepted = accept_run(shop.engine, run)
    assert accepted.outcome is RunOutcome.ACCEPTED
    assert shop.checkout.base == accepted.accepted_as
    assert (shop.request(number).status, kept(shop, number)) == (RequestStatus.BLOCKED, "AWAITING_CLOSE")
    assert shop.hub.rows[number].is_open
    assert labels(shop, number) == ["agent:running"]
    assert shop.said(number).startswith("**Accepted** · attempt 1 of 6")
    assert f"Merged into `main` as `{shop.checkout.base[:12]}`" in shop.said(number)
    shop.look()
    backlog = read_backlog(shop.engine.backlog)
    barrier = find_barrier(shop.request(waiting), backlog)
    assert barrier is not None
    assert barrier.reason_code == "DEPENDS_NOT_DONE"
    assert shop.quiet()
    shop.hub.close(number, "maya")
    shop.look()
    assert shop.request(number).status is RequestStatus.DONE
    assert labels(shop, number) == []
    assert find_barrier(shop.request(waiting), read_backlog(shop.engine.backlog)) is None
    assert shop.quiet()


@pytest.mark.spec("ISS-9")
@pytest.mark.parametrize("is_automatic", [False, True])
def test_accept_closes_the_issue_where_the_settings_say_so(open_shop: Open, is_automatic: bool) -> None:
    shop = open_shop(**CLOSES, **({"accept": "auto"} if is_automatic else {}))
    number, run = shop.finished()
    if not is_automatic:
        assert shop.hub.rows[number].is_open
        accept_run(shop.engine, run)
    row = shop.hub.rows[number]
    assert (row.is_open, row.reason, labels(shop, number)) == (False, "completed", [])
    assert shop.request(number).status is RequestStatus.DONE
    assert shop.said(number).startswith("**Accepted**")
    assert shop.quiet()


@pytest.mark.spec("ISS-9", "ISS-10")
def test_what_was_accepted_and_is_opened_again_stays_open(open_shop: Open) -> None:
    shop = open_shop(**CLOSES)
    number, run = shop.finished()
    accept_run(shop.engine, run)
    shop.time.sleep(60)
    shop.hub.reopen(number, "maya")
    shop.look()
    assert shop.quiet()
    assert shop.hub.rows[number].is_open
    shop.time.sleep(60)
    shop.hub.comment(number, "/retry once more", "maya")
    second = shop.work(number)
    accept_run(shop.engine, second)
    assert not shop.hub.rows[number].is_open


@pytest.mark.spec("ISS-9")
def test_an_automatic_merge_keeps_its_label_until_the_issue_is_closed(open_shop: Open) -> None:
    shop = open_shop(accept="auto")
    number, run = shop.finished()
    assert run.outcome is RunOutcome.ACCEPTED
    assert (labels(shop, number), kept(shop, number)) == (["agent:running"], "AWAITING_CLOSE")
    assert shop.quiet()


@pytest.mark.spec("ISS-4", "ISS-9")
@pytest.mark.parametrize("where", ["", r"PATCH .*/issues/comments/", r"PATCH .*/issues/1$", r"DELETE .*/labels/"])
@pytest.mark.parametrize("is_lost", [False, True])
def test_what_github_misses_of_an_acceptance_comes_with_the_next_look(
    open_shop: Open,
    where: str,
    is_lost: bool,
) -> None:
    shop = open_shop(**CLOSES, **PULLS)
    number, run = shop.finished()
    (shop.scene.api.loses if is_lost else shop.scene.api.unsent)(where, times=40 if not where else 3)
    accepted = accept_run(shop.engine, run)
    assert (accepted.outcome, shop.checkout.base) == (RunOutcome.ACCEPTED, accepted.accepted_as)
    shop.scene.api.faults.clear()
    shop.look()
    assert not shop.hub.rows[number].is_open
    assert labels(shop, number) == []
    assert shop.said(number).startswith("**Accepted**")
    [pull] = shop.hub.pulls
    assert (pull.is_open, len(shop.hub.rows[pull.number].comments)) == (False, 1)
    assert "accepted and merged into `main` as" in shop.hub.rows[pull.number].comments[0].body
    assert [event.kind for event in shop.hub.rows[number].events].count("closed") == 1
    assert shop.quiet()


@pytest.mark.spec("ISS-4", "ISS-9")
def test_a_pull_request_whose_result_could_not_be_written_is_closed_when_its_run_is_accepted(open_shop: Open) -> None:
    shop = open_shop(**CLOSES, **PULLS)
    number, api = shop.queued(), shop.scene.api
    api.before = lambda ask: api.answers("comments", 502, times=90) if str(ask)[-6:] == "/pulls" else None
    run = shop.work(number)
    api.before = lambda _ask: None
    accept_run(shop.engine, run)
    api.faults.clear()
    shop.look()
    [pull] = shop.hub.pulls
    results = [each.body for each in shop.hub.rows[number].comments if each.body.startswith("**Accepted**")]
    assert [f"/pull/{pull.number}" in each for each in results] == [True]
    assert (pull.is_open, len(shop.hub.rows[pull.number].comments), shop.hub.rows[number].is_open) == (False, 1, False)
    assert shop.quiet()


@pytest.mark.spec("ISS-9")
def test_a_pull_request_that_was_merged_before_it_was_accepted_here_is_left_as_it_is(open_shop: Open) -> None:
    shop = open_shop(**PULLS)
    _, run = shop.finished()
    shop.hub.merge_pull(shop.hub.pulls[0].number, "maya")
    accept_run(shop.engine, run)  # nobody has looked yet
    shop.look()
    [pull] = shop.hub.pulls
    assert (pull.merged_at is not None, shop.hub.rows[pull.number].comments) == (True, [])
    assert shop.quiet()


@pytest.mark.spec("ISS-9", "ISS-6", "REQ-6")
@pytest.mark.parametrize("is_lost", [False, True])
def test_sending_back_is_a_comment_that_starts_a_new_run(open_shop: Open, is_lost: bool) -> None:
    shop = open_shop()
    number, run = shop.finished()
    shop.time.sleep(60)
    if is_lost:
        shop.scene.api.loses(r"POST .*/comments")
    assert send_back(shop.engine, run, "Greet in Japanese, too.\n/cancel").outcome is RunOutcome.SENT_BACK
    asked = [each.body for each in shop.hub.rows[number].comments if "/retry Greet in Japanese" in each.body]
    assert len(asked) == 1
    shop.look()
    assert (shop.request(number).status, labels(shop, number)) == (RequestStatus.READY, ["agent:retry"])
    second = shop.work(number)
    assert second.outcome is RunOutcome.AWAITING_ACCEPTANCE
    assert "Greet in Japanese, too." in " ".join(told.summary for told in second.feedback)
    assert "attempt 2 of 6" in shop.said(number)
    assert shop.quiet()


@pytest.mark.spec("ISS-6", "ISS-10")
def test_a_look_that_breaks_off_before_a_retry_leaves_no_run_waiting_for_ever(open_shop: Open) -> None:
    shop = open_shop()
    number, first = shop.finished()
    shop.time.sleep(60)
    shop.hub.comment(number, "/retry in UTC", "maya")
    shop.scene.api.answers("reactions", 500)
    with pytest.raises(AiflowError):
        shop.look()
    second = start_run(shop.engine, RequestId(f"GH-{number}"))
    assert (shop.now(first).outcome, second.outcome) == (RunOutcome.AWAITING_ACCEPTANCE,) * 2
    shop.look()
    assert (shop.now(first).outcome, shop.now(second).outcome) == (
        RunOutcome.SENT_BACK,
        RunOutcome.AWAITING_ACCEPTANCE,
    )
    assert shop.quiet()


@pytest.mark.spec("ISS-4")
def test_sending_back_that_cannot_be_written_is_finished_by_doing_it_again(open_shop: Open) -> None:
    shop = open_shop()
    number, run = shop.finished()
    shop.time.sleep(60)
    shop.scene.api.down()
    with pytest.raises(AiflowError) as down:
        send_back(shop.engine, run, "Greet in Japanese, too.")
    assert down.value.reason_code == "GITHUB_UNREACHABLE"
    shop.scene.api.down(is_down=False)
    send_back(shop.engine, run, "Greet in Japanese, too.")
    shop.look()
    assert shop.request(number).status is RequestStatus.READY
    assert sum("/retry Greet" in each.body for each in shop.hub.rows[number].comments) == 1


@pytest.mark.spec("ISS-4")
@pytest.mark.parametrize("is_seen", [True, False])
def test_what_another_checkout_did_again_is_neither_accepted_nor_sent_back_here(
    open_shop: Open,
    is_seen: bool,
) -> None:
    here, there = open_shop("here"), open_shop("there")
    number, stale = here.finished()
    there.look()
    here.hub.comment(number, "/retry", "maya")
    newer = there.work(number)
    if is_seen:
        here.care.sync()
        with pytest.raises(ConflictError) as refused:
            accept_run(here.engine, stale)
        assert refused.value.reason_code == "RUN_NOT_ACCEPTABLE"
        assert here.now(stale).accepted_as is None
    said = len(here.hub.rows[number].comments)
    with pytest.raises(ConflictError) as refused:
        send_back(here.engine, stale, "No.")
    assert newer.run_id in str(refused.value)
    assert len(here.hub.rows[number].comments) == said
    assert there.now(newer).outcome is RunOutcome.AWAITING_ACCEPTANCE


@pytest.mark.spec("ISS-9", "RUN-12", "ISS-8")
def test_a_run_that_is_cancelled_here_is_shown_as_stopped_on_its_issue(open_shop: Open) -> None:
    shop = open_shop()
    number = shop.queued()

    def cancel() -> None:
        [(_, run)] = [each for each in shop.checkout.runs.runs.items() if each[1] is not None]
        assert run is not None
        cancel_run(shop.engine, run)

    shop.summary = "Half of it."
    shop.meanwhile = cancel
    run = shop.work(number)
    assert run.outcome is RunOutcome.CANCELLED
    assert labels(shop, number) == ["agent:blocked"]
    said = shop.said(number)
    assert said.startswith("**aiflow stopped and needs you** · attempt 1 of 6")
    assert '"blocked_reason": "decision_needed"' in said
    assert '"reason_code": "CANCELLED"' in said
    assert kept(shop, number) == "ISSUE_RETRY_ONLY"
    assert shop.quiet()


@pytest.mark.spec("ISS-9", "GIT-3")
def test_a_run_that_conflicts_is_brought_in_line_and_accepted_as_any_other(open_shop: Open) -> None:
    shop = open_shop(**CLOSES, **PULLS)
    number, run = shop.finished()
    repository, main = shop.checkout.repository, "refs/heads/main"
    tree = {**repository.files_of(shop.checkout.base), f"GH-{number}.txt": b"theirs"}
    repository.refs[main] = repository.make_commit(repository.keep_tree(tree), (shop.checkout.base,), "Theirs")
    refused = accept_run(shop.engine, run)
    assert refused.error is not None
    assert refused.error.reason_code == "MERGE_CONFLICT"
    seen: list[tuple[str, list[str]]] = []

    def look() -> None:
        shop.look()
        seen.append((shop.request(number).status.value, labels(shop, number)))

    shop.meanwhile = look
    accepted = accept_updated(shop.engine, run)
    assert seen == [("running", ["agent:running"])]
    assert accepted.outcome is RunOutcome.ACCEPTED
    assert not shop.hub.rows[number].is_open
    assert [pull.is_open for pull in shop.hub.pulls] == [False]
    shop.look()
    assert shop.quiet()
