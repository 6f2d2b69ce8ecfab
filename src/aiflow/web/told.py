"""How times, lengths of time, money and numbers are said on a page (DESIGN §5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from datetime import date, datetime

    from aiflow.messages import Texts

_CODE = re.compile(r"`([^`\n]+)`")
# Stands for a link while a text is filled; a character that no text has.
_SLOT = "\ue000"
_STEPS = ((86400, "d"), (3600, "h"), (60, "min"))


def ago(texts: Texts, now: datetime, at: datetime | None) -> Markup:
    """Say how long ago something was; the moment itself on hover and to machines."""
    if at is None:
        return Markup("")
    seconds = max(0, (now - at).total_seconds())
    length, unit = next(((n, u) for n, u in _STEPS if seconds >= n), (0, ""))
    words = texts(f"web.ago.{unit}", n=int(seconds // length)) if length else texts("web.ago.now")
    return _time(at, words)


def age(texts: Texts, now: datetime, at: datetime | None) -> Markup:
    """Say how old something is, for a column: "3 d"."""
    if at is None:
        return Markup("–")
    seconds = max(0, (now - at).total_seconds())
    length, unit = next(((n, u) for n, u in _STEPS if seconds >= n), (60, "min"))
    return _time(at, texts(f"web.age.{unit}", n=int(seconds // length)))


def moment(texts: Texts, at: datetime | None, form: str = "clock") -> Markup:
    """Say when something was: by the clock, or with its day."""
    if at is None:
        return Markup("")
    here = at.astimezone()
    clock = f"{here.hour}:{here.minute:02}"
    if form == "clock":
        return _time(at, clock, form)
    day = texts(
        "web.day", weekday=texts(f"web.weekday.{here.weekday()}"), month=texts(f"web.month.{here.month}"), day=here.day
    )
    return _time(at, texts("web.moment", day=day, clock=clock) if form == "full" else day, form)


def short_day(texts: Texts, day: date) -> str:
    """Say a day of this year: "4 Nov"."""
    return texts("web.short_day", month=texts(f"web.month.{day.month}")[:3], day=day.day)


def duration(texts: Texts, seconds: float | None) -> str:
    """Say how long something took: "42 s", "42 min", "6 h 51 min"."""
    if seconds is None:
        return "–"
    whole = round(seconds)
    if whole < 60:
        return texts("web.seconds", n=whole)
    hours, minutes = divmod(whole // 60, 60)
    if not hours:
        return texts("web.minutes", n=minutes)
    return texts("web.hours", hours=hours, minutes=minutes) if minutes else texts("web.hours.whole", n=hours)


def elapsed(seconds: float) -> str:
    """Say a running clock: 16:12, or 1:02:07."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def money(amount: float | None) -> str:
    """Say an amount of money; a tiny one is not nothing."""
    if amount is None:
        return "–"
    return "< $0.01" if 0 < amount < 0.005 else f"${amount:,.2f}"


def number(value: int) -> str:
    """Write a number with separators."""
    return f"{value:,}"


def percent(part: float) -> str:
    """Write a part of a whole as an attribute of a picture has it."""
    return f"{100 * part:.2f}%"


def codes(text: object) -> Markup:
    """Show what a message puts in backticks as code, and all of it as text."""
    parts = _CODE.split(str(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)
    )


def linked(texts: Texts, key: str, link: Markup, **facts: object) -> Markup:
    """Say a text in which something is a link: its `{link}`; all else is text."""
    text = texts(key, link=_SLOT, **{name: str(value).replace(_SLOT, "") for name, value in facts.items()})
    before, _, after = text.partition(_SLOT)
    return escape(before) + link + escape(after)


def _time(at: datetime, words: str, form: str = "") -> Markup:
    exact = at.astimezone().isoformat(sep=" ", timespec="seconds")
    kind = Markup(' data-form="{}"').format(form) if form else ""
    return Markup('<time datetime="{}" title="{}"{}>{}</time>').format(
        at.isoformat(timespec="seconds"), exact, kind, words
    )
