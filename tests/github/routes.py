"""What the hub answers to each call that aiflow makes."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from github import shapes
from github.call import AppRow, Call, Found, RefusedError
from github.hub import LABELLERS, WRITERS, HookRow, IssueRow, PullRow


def _since(call: Call, at: datetime) -> bool:
    since = call.query.get("since")
    return since is None or at >= datetime.fromisoformat(since)


def list_issues(call: Call, repo: str) -> Found:
    call.repo(repo)
    if not call.hub.has_issues:
        raise RefusedError(410, "Issues are disabled for this repo")
    state = call.query.get("state", "open")
    rows = [row for row in call.hub.shown() if state == "all" or (state == "open") == row.is_open]
    rows = [row for row in rows if _since(call, row.updated_at)]
    by_update = call.query.get("sort") == "updated"
    rows.sort(key=lambda row: (row.updated_at if by_update else row.created_at, row.number))
    if call.query.get("direction", "desc") == "desc":
        rows.reverse()
    return call.page([shapes.issue(row, call.hub) for row in rows])


def get_issue(call: Call, repo: str, number: str) -> Found:
    return 200, shapes.issue(call.issue(repo, number), call.hub), {}


def edit_issue(call: Call, repo: str, number: str) -> Found:
    row = call.issue(repo, number)
    call.need(LABELLERS)
    if call.body("state") == "closed":
        call.hub.close(row.number, call.by.login, call.body("state_reason") or "completed")
    elif call.body("state") == "open":
        call.hub.reopen(row.number, call.by.login)
    return 200, shapes.issue(row, call.hub), {}


def list_comments(call: Call, repo: str, number: str) -> Found:
    row = call.issue(repo, number)
    listed = [comment for comment in call.hub.listed_comments(row, call.by) if _since(call, comment.updated_at)]
    return call.page([shapes.comment(comment, call.hub.repo) for comment in listed])


def post_comment(call: Call, repo: str, number: str) -> Found:
    row = call.issue(repo, number)
    _check_body(call)
    made = call.hub.comment(row.number, call.body("body"), call.by.login)
    shape = shapes.comment(made, call.hub.repo)
    return 201, shape, {"location": str(shape["url"])}


def _check_body(call: Call) -> None:
    body = call.body("body")
    if not isinstance(body, str) or not body.strip():
        errors = [
            {"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body cannot be blank"}
        ]
        raise RefusedError(422, "Validation Failed", errors=errors)
    if len(body) > 65_536:
        raise RefusedError(
            422,
            "Validation Failed",
            errors=[
                {
                    "resource": "IssueComment",
                    "code": "custom",
                    "field": "body",
                    "message": "body is too long (maximum is 65536 characters)",
                }
            ],
        )


def edit_comment(call: Call, repo: str, comment_id: str) -> Found:
    call.repo(repo)
    comment = call.hub.find_comment(int(comment_id))
    if comment is None:
        raise RefusedError(404, "Not Found")
    if comment.author is not call.by:
        call.need(WRITERS)
    _check_body(call)
    return 200, shapes.comment(call.hub.edit_comment(comment.id, call.body("body")), call.hub.repo), {}


def delete_comment(call: Call, repo: str, comment_id: str) -> Found:
    call.repo(repo)
    comment = call.hub.find_comment(int(comment_id))
    if comment is None:
        raise RefusedError(404, "Not Found")
    if comment.author is not call.by:
        call.need(WRITERS)
    call.hub.delete_comment(comment.id)
    return 204, None, {}


def react(call: Call, repo: str, comment_id: str) -> Found:
    call.repo(repo)
    comment = call.hub.find_comment(int(comment_id))
    if comment is None:
        raise RefusedError(404, "Not Found")
    said = (call.by.login, str(call.body("content")))
    is_new = said not in comment.reactions
    comment.reactions += [said] if is_new else []
    return 201 if is_new else 200, shapes.reaction(call.hub.new_id(), call.by, said[1], call.hub.now()), {}


def list_events(call: Call, repo: str, number: str) -> Found:
    events = call.hub.listed_events(call.issue(repo, number))
    return call.page([shapes.event(event, call.hub.repo) for event in events])


def list_blockers(call: Call, repo: str, number: str) -> Found:
    row = call.issue(repo, number)
    if not call.hub.has_dependencies:
        raise RefusedError(404, "Not Found")
    return call.page([shapes.blocker(each, call.hub) for each in row.blocked_by])


def _labels(call: Call, row: IssueRow) -> Found:
    return 200, [shapes.label(label, call.hub.repo) for label in row.labels], {}


def add_labels(call: Call, repo: str, number: str) -> Found:
    row = call.issue(repo, number)
    call.need(LABELLERS)
    for name in call.body("labels") or ():
        call.hub.label(row.number, name, call.by.login)
    return _labels(call, row)


def remove_label(call: Call, repo: str, number: str, name: str) -> Found:
    row = call.issue(repo, number)
    call.need(LABELLERS)
    if not call.hub.unlabel(row.number, name, call.by.login):
        raise RefusedError(404, "Label does not exist")
    return _labels(call, row)


def list_labels(call: Call, repo: str) -> Found:
    call.repo(repo)
    return call.page([shapes.label(label, call.hub.repo) for label in call.hub.labels.values()])


def create_label(call: Call, repo: str) -> Found:
    call.repo(repo)
    call.need(WRITERS)
    name = str(call.body("name"))
    if name.casefold() in call.hub.labels:
        raise RefusedError(
            422, "Validation Failed", errors=[{"resource": "Label", "code": "already_exists", "field": "name"}]
        )
    if not re.fullmatch(r"[0-9a-fA-F]{6}", str(call.body("color"))):
        raise RefusedError(
            422, "Validation Failed", errors=[{"resource": "Label", "code": "invalid", "field": "color"}]
        )
    shape = shapes.label(call.hub.make_label(name, call.body("color"), call.body("description")), call.hub.repo)
    return 201, shape, {"location": str(shape["url"])}


def permission(call: Call, repo: str, login: str) -> Found:
    call.repo(repo)
    if call.by.permission not in WRITERS:
        raise RefusedError(403, "Must have push access to view collaborator permission.")
    user = call.hub.users.get(login.casefold())
    if user is None or user.login.endswith("[bot]"):
        raise RefusedError(404, f"{login} is not a user")
    return 200, shapes.permission(user), {}


def repository(call: Call, repo: str) -> Found:
    call.repo(repo)
    return 200, shapes.repository(call.hub, call.by), {}


def _hook(call: Call, repo: str, hook_id: str) -> HookRow:
    call.repo(repo)
    hook = next((hook for hook in call.hub.hooks if str(hook.id) == hook_id), None)
    if hook is None or call.by.permission != "admin":
        raise RefusedError(404, "Not Found")
    return hook


def list_hooks(call: Call, repo: str) -> Found:
    call.repo(repo)
    if call.by.permission != "admin":
        raise RefusedError(404, "Not Found")
    return call.page([shapes.hook(hook) for hook in call.hub.hooks])


def list_deliveries(call: Call, repo: str, hook_id: str) -> Found:
    return 200, [shapes.delivery(each) for each in reversed(_hook(call, repo, hook_id).deliveries)], {}


def list_pulls(call: Call, repo: str) -> Found:
    call.repo(repo)
    head = call.query.get("head", "").partition(":")[2]
    pulls = [pull for pull in call.hub.pulls if (not head or pull.head == head) and not call.hub.lag_pulls]
    call.hub.lag_pulls = max(0, call.hub.lag_pulls - 1)
    if (state := call.query.get("state", "open")) != "all":
        pulls = [pull for pull in pulls if pull.is_open == (state == "open")]
    return call.page([shapes.pull(pull, call.hub) for pull in reversed(pulls)])


def open_pull(call: Call, repo: str) -> Found:
    call.repo(repo)
    call.need(WRITERS)
    head, hub = str(call.body("head")), call.hub
    if not hub.has_branch(head) or not hub.has_branch(str(call.body("base"))):
        raise RefusedError(
            422, "Validation Failed", errors=[{"resource": "PullRequest", "field": "head", "code": "invalid"}]
        )
    if head in hub.empty:
        none = {"resource": "PullRequest", "code": "custom", "message": f"No commits between main and {head}"}
        raise RefusedError(422, "Validation Failed", errors=[none])
    if any(pull.head == head and pull.is_open for pull in hub.pulls):
        said = {
            "resource": "PullRequest",
            "code": "custom",
            "message": f"A pull request already exists for octo:{head}.",
        }
        raise RefusedError(422, "Validation Failed", errors=[said])
    number = hub.open_pull_issue(call.body("title"), call.by.login)
    made = PullRow(number, head, call.body("base"), call.body("title"), call.body("body") or "", call.by, hub.now())
    hub.pulls.append(made)
    shape = shapes.pull(made, hub)
    return 201, shape, {"location": str(shape["url"])}


def edit_pull(call: Call, repo: str, number: str) -> Found:
    call.repo(repo)
    call.need(WRITERS)
    made = next((pull for pull in call.hub.pulls if str(pull.number) == number), None)
    if made is None:
        raise RefusedError(404, "Not Found")
    if call.body("state") == "closed" and made.is_open:
        call.hub.close_pull(made.number, call.by.login)
    return 200, shapes.pull(made, call.hub), {}


def rate(call: Call) -> Found:
    return 200, shapes.rate(*call.rate), {}


def own_account(call: Call) -> Found:
    if call.by.login.endswith("[bot]"):
        raise RefusedError(403, "Resource not accessible by integration")
    return 200, shapes.account(call.by), {}


def any_account(call: Call, login: str) -> Found:
    user = call.hub.users.get(login.casefold())
    if user is None:
        raise RefusedError(404, "Not Found")
    return 200, shapes.account(user), {}


def _app(call: Call) -> AppRow:
    if not isinstance(call.who, AppRow):
        raise RefusedError(401, "A JSON web token could not be decoded")
    return call.who


def own_app(call: Call) -> Found:
    app = _app(call)
    return (
        200,
        {**shapes.template("app"), "id": app.id, "slug": app.slug, "owner": shapes.user(call.hub.user("owner"))},
        {},
    )


def installation(call: Call, repo: str) -> Found:
    app = _app(call)
    if not app.is_installed or repo != call.hub.repo:
        raise RefusedError(404, "Not Found")
    named = {"id": 77, "app_id": app.id, "app_slug": app.slug, "account": shapes.user(call.hub.user("owner"))}
    return 200, {**shapes.template("installation"), **named}, {}


def access_token(call: Call, installation_id: str) -> Found:
    app = _app(call)
    if installation_id != "77" or not app.is_installed:
        raise RefusedError(404, "Not Found")
    ends = call.hub.now() + app.lifetime
    token = f"ghs_{len(app.tokens) + 1:020d}"
    app.tokens[token] = ends
    said = {"permissions": {"issues": "write", "metadata": "read"}, "repository_selection": "selected"}
    return 201, {"token": token, "expires_at": shapes.moment(ends), **said}, {}


_REPO = r"/repos/([^/]+/[^/]+)"
_ISSUE = _REPO + r"/issues/(\d+)"
_COMMENT = _REPO + r"/issues/comments/(\d+)"
ROUTES: dict[tuple[str, str], Callable[..., Found]] = {
    ("GET", _REPO + "/issues"): list_issues,
    ("GET", _ISSUE): get_issue,
    ("PATCH", _ISSUE): edit_issue,
    ("GET", _ISSUE + "/comments"): list_comments,
    ("POST", _ISSUE + "/comments"): post_comment,
    ("PATCH", _COMMENT): edit_comment,
    ("DELETE", _COMMENT): delete_comment,
    ("POST", _COMMENT + "/reactions"): react,
    ("GET", _ISSUE + "/events"): list_events,
    ("GET", _ISSUE + "/dependencies/blocked_by"): list_blockers,
    ("POST", _ISSUE + "/labels"): add_labels,
    ("DELETE", _ISSUE + "/labels/([^/]+)"): remove_label,
    ("GET", _REPO + "/labels"): list_labels,
    ("POST", _REPO + "/labels"): create_label,
    ("GET", _REPO + "/collaborators/([^/]+)/permission"): permission,
    ("GET", _REPO): repository,
    ("GET", _REPO + "/hooks"): list_hooks,
    ("GET", _REPO + r"/hooks/(\d+)/deliveries"): list_deliveries,
    ("GET", _REPO + "/pulls"): list_pulls,
    ("POST", _REPO + "/pulls"): open_pull,
    ("PATCH", _REPO + r"/pulls/(\d+)"): edit_pull,
    ("GET", "/rate_limit"): rate,
    ("GET", "/user"): own_account,
    ("GET", "/users/([^/]+)"): any_account,
    ("GET", "/app"): own_app,
    ("GET", _REPO + "/installation"): installation,
    ("POST", r"/app/installations/(\d+)/access_tokens"): access_token,
}
