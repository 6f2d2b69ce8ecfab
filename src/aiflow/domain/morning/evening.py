"""Before auto-run starts (WEB-1): what will run and what cannot, what it may use, and whether it can begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.health import Health, may_start, overall

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from aiflow.domain.auto.session import Upcoming
    from aiflow.domain.backlog.selection import Exclusion
    from aiflow.domain.health import Finding
    from aiflow.domain.request import RequestId


class CannotRun(NamedTuple):
    """Requests that will not run for the same reason, in selection order; `status` where that is the reason."""

    reason_code: str
    status: str | None
    request_ids: tuple[RequestId, ...]


class SetCeiling(NamedTuple):
    """One ceiling by the name of its setting, and where it comes from; the value is None where there is none.

    `until` has no setting: its name is that of the option. What was given for this one auto-run comes from `call`.
    """

    name: str
    value: float | datetime | None
    source: str

    @property
    def is_set(self) -> bool:
        """Whether there is such a ceiling."""
        return self.value is not None


class EveningCheck(NamedTuple):
    """What a person should know before auto-run starts.

    `upcoming` are the first that will run if all goes well, of `total`; `running` are at work already. `is_on` says
    that an auto-run is at work, `continues` that this one would carry on with one that was cut off.
    """

    upcoming: tuple[Upcoming, ...]
    total: int
    running: tuple[RequestId, ...]
    cannot: tuple[CannotRun, ...]
    ceilings: tuple[SetCeiling, ...]
    findings: tuple[Finding, ...]
    base_branch: str | None
    is_on: bool = False
    continues: bool = False

    @property
    def health(self) -> Health:
        """The doctor's verdict."""
        return overall(self.findings)

    @property
    def may_start(self) -> bool:
        """Whether auto-run can begin, and would have something to do."""
        return may_start(self.findings) and not self.is_on and self.total > 0

    @property
    def has_ceiling(self) -> bool:
        """Whether anything ends it but the backlog's end and trouble: money, tokens, calls, runs or time."""
        return any(each.is_set and each.name.startswith(("limits.session_", "until")) for each in self.ceilings)


def group_by_reason(excluded: Iterable[Exclusion]) -> tuple[CannotRun, ...]:
    """Put together what will not run for the same reason, in the order in which the reasons first come."""
    groups: dict[tuple[str, str | None], list[RequestId]] = {}
    for each in excluded:
        facts = dict(each.barrier.facts)
        groups.setdefault((each.barrier.reason_code, facts.get("status")), []).append(each.request_id)
    return tuple(CannotRun(code, status, tuple(ids)) for (code, status), ids in groups.items())
