"""Auto-run as plain data (SPEC §11, §13), the same for CLI, API and page."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aiflow.messages.commands import command_line
from aiflow.usecases.shapes.backlog import ENGLISH
from aiflow.usecases.shapes.run_summary import stamp
from aiflow.usecases.shapes.runs import finding_shape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.auto.session import AutoSession
    from aiflow.domain.auto.stopping import StopRequest
    from aiflow.domain.auto.summary import AutoReport, Summary, Waiting
    from aiflow.domain.lock import Lock
    from aiflow.usecases.project.demo import Suggestion


def stop_shape(wish: StopRequest, auto: Lock, run: Lock | None, *, is_ended: bool) -> dict[str, Any]:
    """`stop --json`: what was asked of whom, the run it is at, and whether it has ended."""
    return {
        "stop_request": wish.value,
        "request_id": run.request_id if run else None,
        "run_id": run.run_id if run else None,
        "pid": auto.pid,
        "host": auto.host,
        "has_ended": is_ended,
    }


def summary_shape(summary: Summary) -> dict[str, Any]:
    """`auto --json`: how it ended, what came of each request, what waits, what was not reached."""
    session = summary.session
    return {
        "state": session.state.value,
        "reason_code": session.reason_code,
        "began_at": stamp(session.began_at),
        "ended_at": stamp(session.changed_at),
        "base_branch": session.base_branch,
        "runs": session.runs,
        "done": session.done,
        "cost_usd": session.cost_usd,
        "tokens": session.usage.tokens,
        "agent_calls": session.usage.calls,
        "interrupted": [each.request_id for each in summary.interrupted],
        "results": [asdict(result) for result in session.results],
        "waiting": [waiting_shape(each) for each in summary.waiting],
        "unreached": [asdict(each) for each in summary.unreached],
        "follow_ups": [{"request_id": each.request_id, "title": each.title} for each in summary.follow_ups],
        "checks": [finding_shape(finding, ENGLISH) for finding in summary.findings],
    }


def auto_report_shape(report: AutoReport) -> dict[str, Any]:
    """Whether auto-run is on, by whom and since when, what it is at, and its session so far or the last one's."""
    lock, at_work, session = report.holder, report.at_work, report.session
    return {
        "is_running": lock is not None,
        "was_cut": report.was_cut,
        "pid": lock.pid if lock else None,
        "host": lock.host if lock else None,
        "since": stamp(lock.created_at) if lock else None,
        "begins": [{"at": stamp(each.at), "pid": each.pid} for each in report.begins],
        "stop_request": report.stop_request.value,
        "request_id": at_work.request_id if at_work else None,
        "run_id": at_work.run_id if at_work else None,
        "is_session_current": report.is_current,
        "session": _session_shape(session) if session else None,
        "summary": summary_shape(report.summary) if report.summary else None,
    }


def demo_shape(root: str, summary: Summary | None, suggestions: Iterable[Suggestion]) -> dict[str, Any]:
    """`demo --json`: where it is, what auto-run did there, and what to try next."""
    auto = summary_shape(summary) if summary else None
    groups = [{"name": each.name, "commands": [*map(command_line, each.actions)]} for each in suggestions]
    return {"root": root, "auto": auto, "next": groups}


def waiting_shape(each: Waiting) -> dict[str, Any]:
    """One request that waits for a person, and the command to continue."""
    return {
        "request_id": each.request_id,
        "title": each.title,
        "reason_code": each.reason_code,
        "text": each.text,
        "command": command_line(each.action) if each.action else None,
        "is_question": each.is_question,
        "choices": each.choices,
    }


def _session_shape(session: AutoSession) -> dict[str, Any]:
    """One session in numbers."""
    return {
        "state": session.state.value,
        "reason_code": session.reason_code,
        "began_at": stamp(session.began_at),
        "changed_at": stamp(session.changed_at),
        "base_branch": session.base_branch,
        "runs": session.runs,
        "done": session.done,
        "cost_usd": session.cost_usd,
        "tokens": session.usage.tokens,
        "agent_calls": session.usage.calls,
        "results": [asdict(result) for result in session.results],
    }
