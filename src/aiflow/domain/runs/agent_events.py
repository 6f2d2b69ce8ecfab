"""What a run learns from its agents' calls (RUN-13): what they used, their sessions, a quota that is used up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.usage import Usage
from aiflow.domain.lifecycle import RunEvent
from aiflow.domain.runs.events import given_back, happen, stopped
from aiflow.domain.runs.quota import next_wait, over
from aiflow.domain.runs.spending import spent

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.agents.call import AgentReply
    from aiflow.domain.runs.quota import QuotaPatience
    from aiflow.domain.runs.run import Run, RunError


def replied(run: Run, role: Role, reply: AgentReply, seconds: float) -> Run:
    """An agent has come back: what it used is added up, its session is known, and so is what a person should know."""
    # The call itself was counted before it was launched.
    used = replace(reply.usage, calls=0, seconds=round(seconds, 3))
    known = replace(spent(run, role, used), warnings=tuple(dict.fromkeys((*run.warnings, *reply.warnings))))
    if reply.reason_code != "AGENT_QUOTA":
        known = replace(known, quota=None)
    return _with_session(known, role, reply.session_id)


def _with_session(run: Run, role: Role, session_id: str | None) -> Run:
    """Remember the session that a role's next call in this step continues; None is none."""
    if role is Role.PLANNER:
        return replace(run, planning_session=session_id)
    sessions = {name: known for name, known in run.work.sessions.items() if name != role}
    if session_id is not None:
        sessions[role.value] = session_id
    return replace(run, steps={**run.steps, run.current_step_id or "": replace(run.work, sessions=sessions)})


def worked(run: Run, seconds: float) -> Run:
    """Tests or a set-up took their time."""
    return replace(run, usage=run.usage + Usage(seconds=round(seconds, 3)))


def quota_reached(
    run: Run, role: Role, why: RunError, wait: tuple[datetime | None, QuotaPatience], now: datetime
) -> Run:
    """The agent's quota is used up: the attempt is given back, and the run waits, or stops where it has waited enough.

    `wait` is when the quota is there again as far as the agent knows, and how long it may be waited for.
    """
    retry_at, patience = wait
    back = spent(given_back(run, role), role, Usage(calls=-1))
    quota = next_wait(run.quota, retry_at, now, patience, why.summary)
    if quota is None:
        if retry_at is not None:  # the person should know when it makes sense to come back
            stamp = retry_at.isoformat(timespec="seconds")
            why = replace(why, summary=f"{why.summary} ({stamp})", facts=(*why.facts, ("retry_at", stamp)))
        return stopped(replace(back, quota=None), why, now)
    until = quota.until.isoformat(timespec="seconds")
    return happen(replace(back, quota=quota), RunEvent.QUOTA_WAIT, now, "AGENT_QUOTA", until)


def quota_waited(run: Run, now: datetime) -> Run:
    """The time has come to try again."""
    assert run.quota is not None, run.run_id
    return happen(replace(run, quota=over(run.quota)), RunEvent.QUOTA_BACK, now)
