"""The doctor's look at GitHub (DOC-1, ISS-1): who we are there, what we may do, and what aiflow would miss.

Without a call it says what this machine alone shows; with calls, everything. Nothing is changed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.health import Finding, Health
from aiflow.domain.issue_ways import request_id_of
from aiflow.domain.issues.issue import Right
from aiflow.domain.issues.labels import AGENT_LABELS
from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.errors import AiflowError
from aiflow.messages.commands import as_plain
from aiflow.usecases.shapes.errors import error_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from aiflow.domain.issues.issue import Account
    from aiflow.domain.issues.repository import Hook
    from aiflow.messages import Texts
    from aiflow.ports.issues import IssueHost
    from aiflow.settings import Settings

CLOCK_OFF = timedelta(seconds=60)
FEW_CALLS = 0.1
DELIVERIES = 20
HEADERS_FOR = timedelta(days=30)
_SETTINGS = NextAction(ActionKind.SETTINGS)
_HEARD = frozenset({"issues", "issue_comment", "*"})


class IssueLook(NamedTuple):
    """How the doctor looks at GitHub: the client, our clock, what kind of token it is, an issue that is known.

    `has_secret` is whether this machine expects a webhook's deliveries, `are_labels_refused` whether the account was
    not allowed to make labels, `headers` who posted Run Headers since a moment and on which issue.
    """

    connect: Callable[[], IssueHost]
    now: Callable[[], datetime]
    token_kind: str
    some_issue: Callable[[], int | None]
    has_secret: bool = False
    are_labels_refused: Callable[[], bool] = lambda: False
    headers: Callable[[datetime], Mapping[Account, int]] = lambda _since: {}


def check_issues_here(settings: Settings, look: IssueLook, texts: Texts) -> Iterator[Finding]:
    """Check what this machine alone shows: the packages, the token, and settings that do not go together."""
    try:
        look.connect()
    except AiflowError as error:
        yield _failed(error, texts)
        return
    yield Finding("github", Health.PASS, None, "github.set", (("repo", settings.text("github.repo")),))


def check_issues(settings: Settings, look: IssueLook, texts: Texts) -> Iterator[Finding]:
    """Check everything; what cannot be asked any more after a failure is left out."""
    here = list(check_issues_here(settings, look, texts))
    if any(finding.health is Health.FAIL for finding in here):
        yield from here
        return
    host = look.connect()
    try:
        yield from _check_line(host, look, settings)
        yield from _check_account(host, look, settings)
        yield from _check_labels(host, look)
        yield from _check_hooks(host, look, settings)
        yield from _check_blockers(host, look)
        yield from _check_names(host, settings)
        yield from _check_runners(host, look, settings)
    except AiflowError as error:
        yield _failed(error, texts)


def _check_line(host: IssueHost, look: IssueLook, settings: Settings) -> Iterator[Finding]:
    """Check that the API answers, how many calls are left, and that the clocks agree."""
    rate = host.rate()
    url = settings.text("github.api_url") or "https://api.github.com"
    yield Finding("github", Health.PASS, None, "github.answers", (("endpoint", url),))
    told = (("left", str(rate.remaining)), ("limit", str(rate.limit)), ("until", f"{rate.resets_at:%H:%M} UTC"))
    health = Health.WARN if rate.remaining < rate.limit * FEW_CALLS else Health.PASS
    yield Finding("rate", health, None, f"rate.{health.lower()}", told)
    off = look.now() - rate.now
    seconds = (("seconds", str(round(abs(off.total_seconds())))),)
    if off >= CLOCK_OFF:
        yield Finding("clock", Health.WARN, None, "clock.ahead", seconds)
    elif off <= -CLOCK_OFF:
        yield Finding("clock", Health.WARN, None, "clock.behind", seconds)
    else:
        yield Finding("clock", Health.PASS, None, "clock.pass")


def _check_account(host: IssueHost, look: IssueLook, settings: Settings) -> Iterator[Finding]:
    """Check who we are, and that we may write."""
    repository, account = host.repository(), host.account()
    who = (("account", account.login), ("repo", repository.name))
    yield Finding("account", Health.PASS, None, f"account.{look.token_kind}", who)
    if not repository.has_issues:
        yield Finding("rights", Health.FAIL, "GITHUB_REFUSED", "rights.no_issues", who)
    elif repository.right is None:
        yield Finding("rights", Health.PASS, None, "rights.app", who)
    elif repository.right < Right.WRITE:
        yield Finding("rights", Health.FAIL, "GITHUB_RIGHTS", "rights.read", who)
    else:
        yield Finding("rights", Health.PASS, None, "rights.pass", who)
    yield from _check_service_account(account, settings)


def _check_service_account(account: Account, settings: Settings) -> Iterator[Finding]:
    named = settings.text("github.service_account")
    if named and named.lower() != account.login.lower():
        told = (("named", named), ("account", account.login))
        yield Finding("account", Health.WARN, None, "account.other", told, fix=_SETTINGS)


def _check_labels(host: IssueHost, look: IssueLook) -> Iterator[Finding]:
    known = {name.lower() for name in host.labels()}
    missing = tuple(name for name in AGENT_LABELS if name not in known)
    told = (("labels", ", ".join(missing)),)
    fix = NextAction(ActionKind.ISSUES_LABELS)
    if missing and look.are_labels_refused():  # it may be another account by now
        yield Finding("labels", Health.WARN, "GITHUB_RIGHTS", "labels.refused", told, fix=fix)
    elif missing:
        yield Finding("labels", Health.WARN, None, "labels.missing", told, fix=fix)
    else:
        yield Finding("labels", Health.PASS, None, "labels.pass")


def _check_hooks(host: IssueHost, look: IssueLook, settings: Settings) -> Iterator[Finding]:
    """Check the webhooks that report issues, as far as we are shown them; polling is enough without one."""
    poll = (("seconds", str(settings.integer("github.poll_seconds"))),)
    try:
        hooks = [hook for hook in host.hooks() if hook.is_active and _HEARD & set(hook.events)]
    except AiflowError as error:
        if error.reason_code != "GITHUB_RIGHTS":
            raise
        yield Finding("webhook", Health.PASS, None, "webhook.hidden", poll)
        return
    if not hooks and look.has_secret:
        yield Finding("webhook", Health.WARN, None, "webhook.lost", poll)
    elif not hooks:
        yield Finding("webhook", Health.PASS, None, "webhook.none", poll)
    for hook in hooks:
        yield _check_deliveries(host, hook)


def _check_deliveries(host: IssueHost, hook: Hook) -> Finding:
    newest = host.deliveries(hook.id)[:DELIVERIES]
    failed = [each for each in newest if not each.is_ok]
    told = (("url", hook.url), ("count", str(len(failed))), ("of", str(len(newest))))
    if not failed:
        return Finding("webhook", Health.PASS, None, "webhook.pass", told)
    seen = tuple(f"{each.at:%Y-%m-%d %H:%M} {each.event}: {each.status or '-'}" for each in failed)
    return Finding("webhook", Health.WARN, None, "webhook.failed", told, seen)


def _check_blockers(host: IssueHost, look: IssueLook) -> Iterator[Finding]:
    number = look.some_issue()
    if number is None:
        return
    try:
        is_known = host.blockers(number) is not None
    except AiflowError as error:
        if error.reason_code != "GITHUB_GONE":
            raise
        return
    health = Health.PASS if is_known else Health.WARN
    yield Finding("blocked_by", health, None, f"blocked_by.{health.lower()}")


def _check_names(host: IssueHost, settings: Settings) -> Iterator[Finding]:
    """Check that the accounts that the settings name are there, and that runners may write."""
    runners = {*filter(None, (settings.text("github.service_account"),)), *settings.texts("github.runners")}
    for name in sorted({*runners, *settings.texts("github.bots")}):
        account = host.account_of(name)
        told = (("account", name),)
        if account is None:
            yield Finding("accounts", Health.WARN, None, "accounts.missing", told, fix=_SETTINGS)
        elif name in runners and not account.is_bot and host.right(name) < Right.WRITE:
            yield Finding("accounts", Health.WARN, None, "accounts.read", told)
        else:
            yield Finding("accounts", Health.PASS, None, "accounts.pass", told)


def _check_runners(host: IssueHost, look: IssueLook, settings: Settings) -> Iterator[Finding]:
    """Check that all accounts that start runs are listed: an unlisted one is not believed, so two may start one issue.

    Anybody can write what looks like a Run Header. Only those who may write here can be another checkout.
    """
    listed = {settings.text("github.service_account"), *settings.texts("github.runners"), host.account().login}
    known = {name.lower() for name in listed}
    for account, number in look.headers(look.now() - HEADERS_FOR).items():
        if account.login.lower() in known:
            continue
        if account.is_bot or host.right(account.login) >= Right.WRITE:
            told = (("account", account.login), ("request_id", request_id_of(number)))
            yield Finding("accounts", Health.WARN, None, "accounts.unlisted", told, fix=_SETTINGS)


def check_pull_requests(settings: Settings) -> Iterator[Finding]:
    """Check that a pull request could be opened where the settings ask for one."""
    if settings.flag("github.pull_request") and not settings.flag("git.push"):
        yield Finding("pulls", Health.WARN, None, "pulls.no_push", fix=_SETTINGS)


def _failed(error: AiflowError, texts: Texts) -> Finding:
    """Say why GitHub cannot be used, with what the reason's own words advise."""
    facts = error_facts(error, texts)
    message = texts.message(error.reason_code, facts)
    told = {**facts, "problem": message.summary}
    return Finding(
        "github",
        Health.FAIL,
        error.reason_code,
        "github.fail",
        tuple((name, str(as_plain(fact))) for name, fact in told.items()),
        tuple(advice.typed for advice in message.actions),
    )


def findings_of(settings: Settings, look: IssueLook | None, texts: Texts) -> Callable[[bool], Iterator[Finding]]:
    """Return how the doctor of a checkout gets to know about issues; nothing where no repository is set."""
    return lambda is_full: (
        iter(()) if look is None else (check_issues if is_full else check_issues_here)(settings, look, texts)
    )
