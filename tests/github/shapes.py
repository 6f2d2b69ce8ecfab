"""The hub's state as GitHub's JSON, in the shapes that its own description demands (Prism checks them)."""

from __future__ import annotations

import copy
import functools
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from github.hub import CommentRow, EventRow, HookRow, Hub, IssueRow, LabelRow, PullRow, User

API, WEB = "https://api.github.com", "https://github.com"
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
JsonObject = dict[str, Any]


@functools.cache
def _templates() -> JsonObject:
    """The examples of GitHub's description, without what is not required."""
    found: JsonObject = json.loads((Path(__file__).parent / "templates.json").read_text(encoding="utf-8"))
    return found


def template(name: str) -> Any:
    return copy.deepcopy(_templates()[name])


def moment(at: datetime | None) -> str | None:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if at else None


def user(of: User | None) -> JsonObject | None:
    if of is None:
        return None
    api, web = f"{API}/users/{quote(of.login)}", f"{WEB}/{quote(of.login)}"
    rest = ("followers", "following", "gists", "starred", "subscriptions", "repos", "events", "received_events")
    return {
        "login": of.login,
        "id": of.id,
        "node_id": f"U_{of.id}",
        "avatar_url": f"{web}.png",
        "gravatar_id": "",
        "url": api,
        "html_url": web,
        **{f"{name}_url": f"{api}/{name}" for name in rest},
        "organizations_url": f"{api}/orgs",
        "type": "Bot" if of.is_bot else "User",
        "site_admin": False,
    }


def account(of: User) -> JsonObject:
    return {**template("account"), **(user(of) or {}), "user_view_type": "public"}


def label(of: LabelRow, repo: str) -> JsonObject:
    url = f"{API}/repos/{repo}/labels/{quote(of.name, safe='')}"
    named = {"id": of.id, "node_id": f"LA_{of.id}", "url": url, "name": of.name, "color": of.color}
    return {**named, "default": False, "description": of.description}


def issue(of: IssueRow, hub: Hub) -> JsonObject:
    url, web = f"{API}/repos/{hub.repo}/issues/{of.number}", f"{WEB}/{hub.repo}"
    kind = "pull" if of.is_pull else "issues"
    shape: JsonObject = {
        "url": url,
        "repository_url": f"{API}/repos/{hub.repo}",
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": f"{web}/{kind}/{of.number}",
        "id": of.id,
        "node_id": f"I_{of.id}",
        "number": of.number,
        "title": of.title,
        "user": user(of.author),
        "labels": [label(each, hub.repo) for each in of.labels],
        "state": "open" if of.is_open else "closed",
        "state_reason": of.reason,
        "locked": False,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "comments": len(of.comments),
        "created_at": moment(of.created_at),
        "updated_at": moment(of.updated_at),
        "closed_at": moment(of.closed_at),
        "author_association": "NONE",
        "body": of.body or None,
    }
    if hub.has_dependencies:
        still = sum(_is_open(each, hub) for each in of.blocked_by)
        total = len(of.blocked_by)
        summary = {"blocked_by": still, "total_blocked_by": total, "blocking": 0, "total_blocking": 0}
        shape["issue_dependencies_summary"] = summary
    if of.is_pull:
        shape["pull_request"] = {"url": f"{API}/repos/{hub.repo}/pulls/{of.number}"} | dict.fromkeys(
            ("html_url", "diff_url", "patch_url"), f"{web}/pull/{of.number}"
        )
    return shape


def _is_open(blocker: tuple[str, int], hub: Hub) -> bool:
    repo, number = blocker
    return hub.rows[number].is_open if repo == hub.repo else hub.elsewhere[blocker][0]


def blocker(of: tuple[str, int], hub: Hub) -> JsonObject:
    repo, number = of
    if repo == hub.repo:
        return issue(hub.rows[number], hub)
    is_open, reason = hub.elsewhere[of]
    row = IssueRow(number, 1, "Of another repository", "", None, LONG_AGO, LONG_AGO, is_open=is_open, reason=reason)
    return issue(row, Hub(repo, hub.clock))


def comment(of: CommentRow, repo: str) -> JsonObject:
    return {
        "url": f"{API}/repos/{repo}/issues/comments/{of.id}",
        "html_url": f"{WEB}/{repo}/issues/{of.number}#issuecomment-{of.id}",
        "issue_url": f"{API}/repos/{repo}/issues/{of.number}",
        "id": of.id,
        "node_id": f"IC_{of.id}",
        "user": user(of.author),
        "created_at": moment(of.created_at),
        "updated_at": moment(of.updated_at),
        "author_association": "NONE",
        "body": of.body,
    }


def event(of: EventRow, repo: str) -> JsonObject:
    shape: JsonObject = {
        "id": of.id,
        "node_id": f"E_{of.id}",
        "url": f"{API}/repos/{repo}/issues/events/{of.id}",
        "actor": user(of.actor),
        "event": of.kind,
        "commit_id": None,
        "commit_url": None,
        "created_at": moment(of.at),
        "performed_via_github_app": None,
    }
    if of.label is not None:
        shape["label"] = {"name": of.label.name, "color": of.label.color}
    if of.kind == "renamed":
        shape["rename"] = {"from": of.renamed[0], "to": of.renamed[1]}
    return shape


def reaction(reaction_id: int, by: User, content: str, at: datetime) -> JsonObject:
    said = {"id": reaction_id, "node_id": f"R_{reaction_id}", "content": content}
    return {**said, "user": user(by), "created_at": moment(at)}


def repository(hub: Hub, by: User | None) -> JsonObject:
    owner, _, name = hub.repo.partition("/")
    held = by.permission if by else "none"
    may = {"admin": held == "admin", "push": held in ("admin", "maintain", "write"), "pull": True}
    return {
        **template("repository"),
        "name": name,
        "full_name": hub.repo,
        "owner": user(User(owner, 1)),
        "html_url": f"{WEB}/{hub.repo}",
        "private": hub.is_private,
        "has_issues": hub.has_issues,
        "default_branch": "main",
        "permissions": may,
    }


def permission(of: User) -> JsonObject:
    folded = {"maintain": "write", "triage": "read"}.get(of.permission, of.permission)
    return {"permission": folded, "role_name": of.permission, "user": {**(user(of) or {}), "role_name": of.permission}}


def rate(limit: int, remaining: int, reset: int) -> JsonObject:
    count = {"limit": limit, "used": limit - remaining, "remaining": remaining, "reset": reset}
    return {"resources": {"core": count, "search": count}, "rate": count}


def hook(of: HookRow) -> JsonObject:
    config = {"url": of.url, "content_type": "json", "insecure_ssl": "0", "secret": "********"}
    return {**template("hook"), "id": of.id, "active": of.is_active, "events": of.events, "config": config}


def delivery(of: tuple[int, str, datetime, int]) -> JsonObject:
    number, kind, at, status = of
    said = {"status": "OK" if 200 <= status < 300 else "failed", "status_code": status}
    return {**template("delivery"), "id": number, "event": kind, "delivered_at": moment(at), **said}


def pull(of: PullRow, hub: Hub) -> JsonObject:
    url, web = f"{API}/repos/{hub.repo}/pulls/{of.number}", f"{WEB}/{hub.repo}/pull/{of.number}"
    shape: JsonObject = template("pull")
    owner = user(User(hub.repo.partition("/")[0], 1))
    for side, branch in (("head", of.head), ("base", of.base)):
        repo = repository(hub, None)
        shape[side] = {**shape[side], "ref": branch, "label": f"octo:{branch}", "user": owner, "repo": repo}
    said = {"title": of.title, "body": of.body or None, "state": "open" if of.is_open else "closed"}
    when = {"created_at": moment(of.created_at), "merged_at": moment(of.merged_at), "merged": of.merged_at is not None}
    when["merge_commit_sha"] = of.merge_commit
    return {**shape, "url": url, "html_url": web, "number": of.number, "user": user(of.author), **said, **when}
