"""What runs cost (RUN-19, AGT-4): by role, by request, by night and by month; a run counts where it began."""

from __future__ import annotations

from datetime import date, time, timedelta
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.morning.clock import at_local
from aiflow.domain.morning.night import EVENING
from aiflow.domain.run_summary import RoleSpent, made_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime, tzinfo

    from aiflow.domain.request import RequestId
    from aiflow.domain.run_summary import RunRecord, RunSummary

# So many days are looked at for roles and requests, so many nights and months are listed.
DAYS, NIGHTS, MONTHS = 30, 14, 12


class CostLine(NamedTuple):
    """What some runs used: those of a request, a night (its evening) or a month, or what a role used in them.

    As a role, None is none: tests and set-up, and what older versions recorded without roles.
    """

    name: str | None
    runs: int = 0
    agent_calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0

    def plus(self, used: RoleSpent) -> CostLine:
        """Return it with what one more run used."""
        return CostLine(
            self.name,
            self.runs + 1,
            self.agent_calls + used.calls,
            self.tokens + used.tokens,
            round(self.cost_usd + used.cost_usd, 6),
            round(self.seconds + used.seconds, 3),
        )


class Costs(NamedTuple):
    """What runs cost: in the last days by role and request, most expensive first; by night and month, newest first."""

    days: int
    total: CostLine
    roles: tuple[CostLine, ...]
    requests: tuple[CostLine, ...]
    nights: tuple[CostLine, ...]
    months: tuple[CostLine, ...]


class _Sums:
    """Lines by their names."""

    def __init__(self) -> None:
        self.lines: dict[str | None, CostLine] = {}

    def add(self, name: str | None, used: RoleSpent) -> None:
        self.lines[name] = self.lines.get(name, CostLine(name)).plus(used)

    def by_cost(self) -> tuple[CostLine, ...]:
        """Return the most expensive first; if no agent reports its cost, those with the most tokens."""
        return tuple(
            sorted(
                self.lines.values(), key=lambda line: (-line.cost_usd, -line.tokens, -line.agent_calls, line.name or "")
            )
        )

    def newest(self, most: int) -> tuple[CostLine, ...]:
        """Return the last of some days or months, newest first."""
        return tuple(sorted(self.lines.values(), key=lambda line: line.name or "", reverse=True))[:most]


def first_month(now: datetime, zone: tzinfo | None = None) -> datetime:
    """Return when the oldest month begins that is listed."""
    today = now.astimezone(zone)
    years, month = divmod(today.year * 12 + today.month - MONTHS, 12)
    return at_local(date(years, month + 1, 1), time(), zone)


def sum_costs(runs: Iterable[tuple[RequestId, RunSummary]], now: datetime, zone: tzinfo | None = None) -> Costs:
    """Sum up what runs used, by a zone's clock (the machine's without one)."""
    total, roles, requests, nights, months = CostLine(None), _Sums(), _Sums(), _Sums(), _Sums()
    since = now - timedelta(days=DAYS)
    for owner, run in runs:
        began, record = made_at(run.run_id), run.record
        if began is None or record is None:
            continue
        used, here = _whole(record), began.astimezone(zone)
        evening = here if here.time() >= EVENING else here - timedelta(days=1)
        nights.add(f"{evening:%Y-%m-%d}", used)
        months.add(f"{here:%Y-%m}", used)
        if began >= since:
            total = total.plus(used)
            requests.add(owner, used)
            for part in _parts(record):
                roles.add(part.role or None, part)
    return Costs(DAYS, total, roles.by_cost(), requests.by_cost(), nights.newest(NIGHTS), months.newest(MONTHS))


def _whole(record: RunRecord) -> RoleSpent:
    return RoleSpent("", record.agent_calls, record.tokens, record.cost_usd, record.agent_seconds)


def _parts(record: RunRecord) -> Iterator[RoleSpent]:
    """Yield what each role of a run used, and what none of them did."""
    yield from record.roles
    rest = RoleSpent(
        "",
        max(0, record.agent_calls - sum(part.calls for part in record.roles)),
        max(0, record.tokens - sum(part.tokens for part in record.roles)),
        max(0.0, round(record.cost_usd - sum(part.cost_usd for part in record.roles), 6)),
        max(0.0, round(record.agent_seconds - sum(part.seconds for part in record.roles), 3)),
    )
    if rest != RoleSpent(""):
        yield rest
