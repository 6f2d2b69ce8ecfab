"""How times, lengths of time, money and numbers are written on a page (DESIGN §5)."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from datetime import date

    from aiflow.messages import Texts

_CODE = re.compile(r"`([^`\n]+)`")
# They stand for markup while a text is filled; characters that no text has.
_SLOTS = tuple(map(chr, range(0xE000, 0xE008)))
_NO_SLOTS = dict.fromkeys(map(ord, _SLOTS))
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
    return Markup("") if at is None else _time(at, _form(texts, at.astimezone(), form), form)


def lately(texts: Texts, now: datetime, at: datetime) -> Markup:
    """Say when something was that may have been yesterday or today: "yesterday, 18:00"."""
    here, days = at.astimezone(), {0: "web.lately.today", 1: "web.lately.yesterday"}
    key = days.get((now.astimezone().date() - here.date()) // timedelta(days=1))
    return _time(at, texts(key, clock=_clock(here)) if key else _form(texts, here, "full"), "lately")


class Timed(NamedTuple):
    """A text with moments in it where no `<time>` can stand: as it reads here, and with the moments themselves."""

    words: str
    moments: str


def timed(texts: Texts, key: str, **facts: object) -> Timed:
    """Fill a text; what a moment is in `moments` a script says by the reader's clock."""
    exact = {name: f"{{{_iso(each)}}}" if isinstance(each, datetime) else each for name, each in facts.items()}
    here = {name: _clock(each.astimezone()) if isinstance(each, datetime) else each for name, each in facts.items()}
    return Timed(texts(key, **here), texts(key, **exact))


def time_words(texts: Texts) -> str:
    """Return the words for moments as a script needs them, which says them by the reader's clock."""
    day = texts("web.day", weekday="{weekday}", month="{month}", day="{day}")
    return json.dumps(
        {
            "weekdays": [texts(f"web.weekday.{number}") for number in range(7)],
            "months": [texts(f"web.month.{number}") for number in range(1, 13)],
            "day": day,
            "moment": texts("web.moment", day="{day}", clock="{clock}"),
            "today": texts("web.lately.today", clock="{clock}"),
            "yesterday": texts("web.lately.yesterday", clock="{clock}"),
        },
        ensure_ascii=False,
    )


def zone(now: datetime) -> str:
    """Name the zone of this machine's clock: "UTC+09:00"."""
    return f"UTC{now.astimezone().isoformat()[-6:]}"


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


def linked(texts: Texts, key: str, link: Markup | None = None, **facts: object) -> Markup:
    """Say a text in which some of what fills it is markup, as a link or a moment; all else is text."""
    given = facts if link is None else {"link": link, **facts}
    kept = [each for each in given.values() if isinstance(each, Markup)]
    slots = iter(_SLOTS)
    filled = {
        name: next(slots) if isinstance(each, Markup) else str(each).translate(_NO_SLOTS)
        for name, each in given.items()
    }
    said = str(escape(texts(key, **filled)))
    for slot, each in zip(_SLOTS, kept, strict=False):
        said = said.replace(slot, each)
    return Markup(said)  # noqa: S704  text is escaped, and markup is what was given as such


def _form(texts: Texts, here: datetime, form: str) -> str:
    if form == "clock":
        return _clock(here)
    month, weekday = texts(f"web.month.{here.month}"), texts(f"web.weekday.{here.weekday()}")
    day = texts("web.day", weekday=weekday, month=month, day=here.day)
    return texts("web.moment", day=day, clock=_clock(here)) if form == "full" else day


def _clock(here: datetime) -> str:
    return f"{here.hour}:{here.minute:02}"


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds")


def _time(at: datetime, words: str, form: str = "ago") -> Markup:
    exact = at.astimezone().isoformat(sep=" ", timespec="seconds")
    return Markup('<time datetime="{}" title="{}" data-form="{}">{}</time>').format(_iso(at), exact, form, words)
