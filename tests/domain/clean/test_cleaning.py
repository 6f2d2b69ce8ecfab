"""What may go once runs are over (GIT-5): the rules, as tables and for any facts at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.domain.clean.cleaning import (
    CleanReason,
    CleanRules,
    Item,
    ItemKind,
    Plan,
    is_old,
    plan_cleaning,
    plan_run,
    without,
)
from aiflow.domain.clean.leftovers import Found, Leftover, LeftoverKind, Ref, RunStanding, TreeState, standing_of
from aiflow.domain.lifecycle import ACTIVE_RUN_STATES, RunState
from aiflow.domain.request import RequestStatus
from aiflow.domain.run_summary import made_at
from builders import NOW

RUN = "RUN-20260101-000000-aaaaaa"
TREE = f"/state/worktrees/{RUN}"
BRANCH = Ref(f"aiflow/RQ-1/{RUN}", "c0ffee")
WIP = Ref(f"refs/aiflow/wip/{RUN}/S01", "feed")
RULES = CleanRules(NOW, 7)
CLOSED = [each for each in RunStanding if each not in (RunStanding.ACTIVE, RunStanding.WAITING)]


def found(**facts: object) -> Found:
    """An accepted run, merged, a month old, with everything still there."""
    known = Found(
        RUN,
        "RQ-1",
        RunStanding.ACCEPTED,
        NOW - timedelta(days=30),
        worktree=TREE,
        branch=replace(BRANCH, is_merged=True),
        checked_out_at=TREE,
        folder=f"/root/runs/RQ-1/{RUN}",
    )
    return replace(known, **facts)  # type: ignore[arg-type]


def told(items: tuple[Item, ...]) -> set[tuple[str, str]]:
    return {(item.kind, item.why) for item in items}


# --- standing --------------------------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-5")
@pytest.mark.parametrize(
    ("state", "reason", "status", "flags", "standing"),
    [
        ("DONE", None, "blocked", {"current"}, "waiting"),
        ("DONE", None, "done", {"accepted", "current"}, "accepted"),
        ("DONE", None, "ready", {"accepted"}, "accepted"),
        ("DONE", None, "done", {"current"}, "request_closed"),
        ("NEEDS_INPUT", "CANCELLED", "blocked", {"current"}, "waiting"),
        ("NEEDS_INPUT", "CANCELLED", "draft", {"current"}, "waiting"),
        ("NEEDS_INPUT", "CANCELLED", "archived", {"current"}, "request_closed"),
        ("NEEDS_INPUT", "CANCELLED", None, {"current"}, "request_gone"),
        ("NEEDS_INPUT", "CANCELLED", "blocked", set(), "superseded"),
        ("FAILED", "REPLANNED", "blocked", set(), "replaced"),
        ("FAILED", "SENT_BACK", "ready", {"current"}, "sent_back"),
        ("FAILED", "RUN_LOST", "blocked", {"current"}, "waiting"),
        ("FAILED", "INTERNAL_ERROR", "done", set(), "superseded"),
    ],
)
def test_a_run_stands_somewhere(
    state: str, reason: str | None, status: str | None, flags: set[str], standing: str
) -> None:
    known = RequestStatus(status) if status else None
    facts = {"is_accepted": "accepted" in flags, "is_current": "current" in flags}
    assert standing_of(RunState(state), reason, known, **facts) == standing


@pytest.mark.spec("GIT-5")
@given(
    st.sampled_from(sorted(ACTIVE_RUN_STATES)),
    st.sampled_from([None, *RequestStatus]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, "REPLANNED", "SENT_BACK"]),
)
def test_a_run_that_may_be_at_work_is_active_whatever_else_is_said(
    state: RunState, status: RequestStatus | None, accepted: bool, current: bool, reason: str | None
) -> None:
    assert standing_of(state, reason, status, is_accepted=accepted, is_current=current) is RunStanding.ACTIVE


@pytest.mark.spec("GIT-5")
def test_a_run_id_says_when_it_began() -> None:
    assert made_at(RUN) == datetime(2026, 1, 1, tzinfo=UTC)
    assert made_at("RUN-20261399-000000-aaaaaa") is None
    assert made_at("RUN-x") is None


@pytest.mark.spec("GIT-5")
def test_old_is_more_than_so_many_days_ago() -> None:
    week = timedelta(days=7)
    assert not is_old(NOW - week, NOW, 7)
    assert is_old(NOW - week - timedelta(seconds=1), NOW, 7)
    assert not is_old(None, NOW, 7)
    assert not is_old(NOW + week, NOW, 7)  # a clock that was set back
    assert all(is_old(moment, NOW, 0) for moment in (None, NOW, NOW + week))
    assert not is_old(NOW - week, NOW, 10**9)


# --- what goes and what stays ----------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-5")
def test_of_an_accepted_run_everything_goes_but_its_own_files() -> None:
    plan = plan_run(found(refs=(WIP,), leftovers=(Leftover("/x", LeftoverKind.FILE),)), RULES)
    assert [item.kind for item in plan.going] == ["worktree", "leftover", "branch", "ref"]
    assert {item.why for item in plan.going} == {"accepted", "leftover"}
    assert [item.commit for item in plan.going if item.kind is ItemKind.BRANCH] == ["c0ffee"]
    assert plan.kept == ()


@pytest.mark.spec("GIT-5")
@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"is_locked": True}, CleanReason.LOCKED),
        ({"is_ambiguous": True}, CleanReason.AMBIGUOUS),
        ({"standing": RunStanding.ACTIVE}, CleanReason.ACTIVE),
        ({"changed_at": NOW - timedelta(days=6)}, CleanReason.YOUNG),
        ({"changed_at": None}, CleanReason.YOUNG),
    ],
)
def test_what_is_at_work_or_young_is_not_touched(facts: dict[str, object], why: CleanReason) -> None:
    gone, file = Leftover("/x.gone", LeftoverKind.GONE), Leftover("/y", LeftoverKind.FILE)
    plan = plan_run(found(**facts, leftovers=(gone, file)), RULES)
    assert [item.name for item in plan.going] == ["/x.gone"]  # that was decided long ago
    assert [(item.kind, item.name, item.why) for item in plan.kept] == [("run", RUN, why)]


@pytest.mark.spec("GIT-5")
@pytest.mark.parametrize("state", [each for each in TreeState if each not in ("saved", "missing")])
@pytest.mark.parametrize("unmerged", [False, True])
def test_a_worktree_with_unsaved_work_stays_and_so_does_its_branch(state: TreeState, unmerged: bool) -> None:
    plan = plan_run(found(tree_state=state, refs=(WIP,)), replace(RULES, takes_unmerged=unmerged, runs_after_days=1))
    assert plan.going == ()
    assert told(plan.kept) == {("worktree", state), ("branch", "worktree_kept"), ("ref", "worktree_kept")}


@pytest.mark.spec("GIT-5")
def test_a_branch_that_is_not_merged_stays_unless_it_is_asked_for() -> None:
    facts = found(branch=BRANCH, refs=(WIP,))
    plan = plan_run(facts, RULES)
    assert told(plan.going) == {("worktree", "accepted")}
    assert told(plan.kept) == {("branch", "not_merged"), ("ref", "not_merged")}
    plan = plan_run(facts, replace(RULES, takes_unmerged=True))
    assert told(plan.going) == {("worktree", "accepted"), ("branch", "not_merged"), ("ref", "not_merged")}
    assert [item.commit for item in plan.going if item.is_unmerged] == ["c0ffee", "feed"]


@pytest.mark.spec("GIT-5")
@pytest.mark.parametrize("standing", [each for each in CLOSED if each is not RunStanding.ACCEPTED])
@pytest.mark.parametrize("branch", [None, replace(BRANCH, is_merged=True)])
def test_unfinished_work_goes_only_with_a_run_that_was_accepted(standing: RunStanding, branch: Ref | None) -> None:
    facts = found(standing=standing, branch=branch, refs=(WIP,))
    assert told(plan_run(facts, RULES).kept) - {("branch", "unfinished")} == {("ref", "unfinished")}
    assert not any(item.kind in (ItemKind.BRANCH, ItemKind.REF) for item in plan_run(facts, RULES).going)
    merged = replace(facts, refs=(replace(WIP, is_merged=True),))
    assert plan_run(merged, RULES).kept == ()
    assert plan_run(facts, replace(RULES, takes_unmerged=True)).kept == ()


@pytest.mark.spec("GIT-5")
def test_a_branch_that_somebody_has_checked_out_stays() -> None:
    plan = plan_run(found(checked_out_at="/home/ada/elsewhere"), replace(RULES, takes_unmerged=True))
    assert told(plan.going) == {("worktree", "accepted")}
    assert told(plan.kept) == {("branch", "checked_out")}


@pytest.mark.spec("GIT-5", "REQ-7")
def test_what_another_checkout_may_need_stays() -> None:
    facts = found(standing=RunStanding.ORPHANED, is_surely_ours=False)
    plan = plan_run(facts, replace(RULES, takes_unmerged=True))
    assert told(plan.going) == {("worktree", "orphaned")}
    assert told(plan.kept) == {("branch", "checkout_away")}


@pytest.mark.spec("GIT-5")
def test_a_run_that_waits_loses_its_worktree_alone() -> None:
    facts = found(standing=RunStanding.WAITING, branch=BRANCH, refs=(WIP,))
    plan = plan_run(facts, CleanRules(NOW, 7, runs_after_days=1, takes_unmerged=True))
    assert told(plan.going) == {("worktree", "waiting")}
    assert plan.kept == ()


@pytest.mark.spec("GIT-5")
def test_a_folder_that_was_put_aside_stays_if_anything_is_in_it() -> None:
    aside = Leftover("/x.aside", LeftoverKind.ASIDE, is_empty=False)
    empty = Leftover("/y.aside", LeftoverKind.ASIDE)
    plan = plan_run(found(leftovers=(aside, empty)), replace(RULES, takes_unmerged=True))
    assert [item.name for item in plan.kept] == ["/x.aside"]
    assert "/y.aside" in {item.name for item in plan.going}


# --- the runs' own files ---------------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-5")
@pytest.mark.parametrize(
    ("facts", "days", "goes"),
    [
        ({}, 0, False),
        ({}, 29, True),
        ({}, 31, False),
        ({"is_last": True}, 29, False),
        ({"branch": BRANCH}, 29, False),
        ({"standing": RunStanding.WAITING}, 29, False),
        ({"worktree": None, "branch": None, "checked_out_at": None}, 29, True),
    ],
)
def test_a_runs_own_files_go_only_if_the_settings_say_so(facts: dict[str, object], days: int, goes: bool) -> None:
    plan = plan_run(found(**facts), replace(RULES, runs_after_days=days))
    assert any(item.kind is ItemKind.RUN for item in plan.going) is goes
    assert (
        plan.going[-1:] == () or (plan.going[-1].kind is ItemKind.RUN) is goes
    )  # last: it says what the rest is about


@pytest.mark.spec("GIT-5")
def test_a_run_stays_as_long_as_one_that_replaced_it() -> None:
    first, second, third = (f"RUN-2026010{day}-000000-aaaaaa" for day in (1, 2, 3))
    rules = replace(RULES, runs_after_days=1)
    runs = [
        found(run_id=first, standing=RunStanding.REPLACED),
        found(run_id=second, standing=RunStanding.REPLACED, names=(first,)),
        found(run_id=third, names=(second,)),
    ]

    def gone(*known: Found) -> set[str]:
        plans = plan_cleaning(known, rules)
        return {plan.found.run_id for plan in plans if any(item.kind is ItemKind.RUN for item in plan.going)}

    assert gone(*runs) == {first, second, third}
    assert gone(runs[0], runs[1], replace(runs[2], is_last=True)) == set()
    assert gone(runs[0], replace(runs[1], branch=BRANCH), runs[2]) == {third}


# --- for any facts ---------------------------------------------------------------------------------------------------

REFS = st.builds(Ref, st.sampled_from(["r/1", "r/2", "r/3"]), st.just("feed"), is_merged=st.booleans())
LEFTOVERS = st.builds(Leftover, st.sampled_from(["/1", "/2", "/3"]), st.sampled_from(LeftoverKind), st.booleans())
FOUND = st.builds(
    Found,
    run_id=st.just(RUN),
    request_id=st.sampled_from([None, "RQ-1"]),
    standing=st.sampled_from(RunStanding),
    changed_at=st.sampled_from([None, NOW, NOW - timedelta(days=8), NOW - timedelta(days=80)]),
    is_locked=st.booleans(),
    is_ambiguous=st.booleans(),
    worktree=st.sampled_from([None, TREE]),
    tree_state=st.sampled_from(TreeState),
    branch=st.none() | st.builds(Ref, st.just("b"), st.just("c0ffee"), is_merged=st.booleans()),
    checked_out_at=st.sampled_from([None, TREE, "/elsewhere"]),
    refs=st.lists(REFS, unique_by=lambda ref: ref.name, max_size=3).map(tuple),
    leftovers=st.lists(LEFTOVERS, unique_by=lambda leftover: leftover.path, max_size=3).map(tuple),
    folder=st.sampled_from([None, "/root/runs/RQ-1/RUN"]),
    is_last=st.booleans(),
    is_surely_ours=st.booleans(),
)
ANY_RULES = st.builds(CleanRules, st.just(NOW), st.sampled_from([0, 7, 60]), st.sampled_from([0, 30]), st.booleans())


@pytest.mark.spec("GIT-5")
@settings(max_examples=60)
@given(FOUND, ANY_RULES)
def test_nothing_that_could_be_somebodys_only_copy_goes_unasked(facts: Found, rules: CleanRules) -> None:
    plan = plan_run(facts, rules)
    going = {item.kind for item in plan.going}
    history = {ItemKind.BRANCH, ItemKind.REF}
    if facts.worktree and facts.tree_state not in (TreeState.SAVED, TreeState.MISSING):
        assert going <= {ItemKind.LEFTOVER}
    if facts.is_locked or facts.is_ambiguous or facts.standing is RunStanding.ACTIVE:
        assert {item.name for item in plan.going} <= {each.path for each in facts.leftovers if each.kind == "gone"}
    if facts.standing is RunStanding.WAITING:
        assert going <= {ItemKind.WORKTREE, ItemKind.LEFTOVER}
    is_open = facts.branch is not None and not facts.branch.is_merged
    is_open |= facts.standing is not RunStanding.ACCEPTED and not all(ref.is_merged for ref in facts.refs)
    if is_open and not rules.takes_unmerged:
        assert not going & {*history, ItemKind.RUN}
    if facts.branch and facts.checked_out_at == "/elsewhere":
        assert not going & history
    assert ItemKind.RUN not in going or not plan.kept  # what stays can still be told whose it is
    assert all(item.commit for item in plan.going if item.kind in history)
    aside = {each.path for each in facts.leftovers if each.kind == "aside" and not each.is_empty}
    assert not aside & {item.name for item in plan.going}


@pytest.mark.spec("GIT-5")
@settings(max_examples=60)
@given(FOUND, ANY_RULES)
def test_everything_of_a_closed_run_goes_or_is_said_to_stay(facts: Found, rules: CleanRules) -> None:
    plan = plan_run(facts, rules)
    told_of = {item.name for item in (*plan.going, *plan.kept)}
    assert len(told_of) == len(plan.going) + len(plan.kept)
    if facts.standing in CLOSED and not any(item.kind is ItemKind.RUN for item in plan.kept):
        there = {facts.worktree, facts.branch and facts.branch.name, *(ref.name for ref in facts.refs)}
        there |= {each.path for each in facts.leftovers}
        assert told_of >= there - {None}


@pytest.mark.spec("GIT-5")
@settings(max_examples=40)
@given(FOUND, FOUND, ANY_RULES)
def test_a_second_look_takes_nothing_that_the_first_did_not(first: Found, second: Found, rules: CleanRules) -> None:
    plan, fresh = plan_run(first, rules), plan_run(second, rules)
    assert without(plan, plan) == plan
    sure = without(plan, fresh)
    assert set(sure.going) <= set(plan.going)
    assert {item.key for item in sure.going} <= {item.key for item in fresh.going}
    assert {item.key for item in (*sure.going, *sure.kept)} >= {item.key for item in plan.going}
    assert without(plan, Plan(first)).going == ()
