"""What an entry of the journal says, in words: for the terminal and the page, in one place.

`activity_words` is the sentence; `activity_facts` are its recorded facts. An entry of a kind or event that is
not known here, by a newer version or damaged, is shown by its facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.activity import ActivityKind, Actor
from aiflow.domain.lifecycle import AutoRunEvent, RunEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aiflow.messages import Texts

    Fields = Mapping[str, Any]

# Facts that have their own wording, or mean nothing to a person.
_SAID = ("event", "key", "from", "to", "digest")
# Events of a run that are about the step it is in; others only happen while it is in one.
_AT_STEP = frozenset(
    {
        RunEvent.IMPLEMENTED,
        RunEvent.ATTEMPT_FAILED,
        RunEvent.REVIEW_FAILED,
        RunEvent.STEP_DONE,
        RunEvent.LAST_STEP_DONE,
        RunEvent.RESUMED_AT_STEP,
        RunEvent.RESUMED_AT_TESTS,
        RunEvent.QUOTA_WAIT,
        RunEvent.QUOTA_BACK,
        RunEvent.TEXT_WITHHELD,
    }
)
_COMMIT_SHOWN = 12


def activity_words(fields: Fields, texts: Texts) -> str:
    """Say one entry in a sentence."""
    kind = str(fields.get("kind", ""))
    said = _SAYS[kind](_data(fields), fields, texts) if kind in _SAYS else ""
    return said or activity_facts(fields, texts)


def activity_facts(fields: Fields, texts: Texts) -> str:
    """Say one entry by what is recorded: its kind, what was changed or moved, and its other facts."""
    return "  ".join(filter(None, (_kind_words(fields, texts), *_more_words(fields))))


def _kind_words(fields: Fields, texts: Texts) -> str:
    kind = str(fields.get("kind", ""))
    return texts(f"activity.kind.{kind}") if texts.has(f"activity.kind.{kind}") else kind


def _more_words(fields: Fields) -> Iterator[str]:
    """Yield what an entry records besides: what was changed or moved, and its other facts; not its reason."""
    data = _data(fields)
    yield str(data.get("event") or data.get("key") or "")
    way = " → ".join(str(data[name]) for name in ("from", "to") if data.get(name) not in (None, ""))
    yield "" if data.get("from") == data.get("to") else way
    for name, value in data.items():
        if name not in _SAID and value not in (None, "", [], {}) and value is not False:
            yield f"{name}={len(value) if isinstance(value, (list, dict)) else value}"


def _data(fields: Fields) -> dict[str, Any]:
    told = fields.get("data")
    return told if isinstance(told, dict) else {}


def _reason(fields: Fields, texts: Texts) -> str:
    """Return the title of an entry's reason; of one that is not known its code."""
    code = fields.get("reason_code")
    return texts.message(code, {}).title if isinstance(code, str) and code else ""


def _say(texts: Texts, key: str, **facts: object) -> str:
    return texts(key, **facts) if texts.has(key) else ""


def _moved(data: Fields, fields: Fields, texts: Texts) -> str:
    event = str(data.get("event", ""))
    if fields.get("actor") == Actor.AUTO_RUN:
        return _auto_moved(event, data, fields, texts)
    if fields.get("actor") == Actor.ISSUES:
        return _say(texts, f"activity.issues.{event}", reason=_reason(fields, texts))
    key = f"activity.run.{event}"
    facts = {
        "reason": _reason(fields, texts),
        "total": data.get("steps"),
        "done": data.get("steps_done"),
        "next": data.get("next_step_id"),
        "title": data.get("next_title"),
        "base": data.get("base_branch"),
        "commit": str(data.get("commit") or "")[:_COMMIT_SHOWN],
    }
    forms = ((".next", "next"), (".of", "done"), (".as", "commit"))
    form = next((form for form, fact in forms if facts[fact] and texts.has(key + form)), "")
    what = _say(texts, key + form, **facts) or facts["reason"]
    step = data.get("step_id")
    return texts("activity.step", step=step, what=what) if what and step and event in _AT_STEP else str(what)


def _auto_moved(event: str, data: Fields, fields: Fields, texts: Texts) -> str:
    if event in (AutoRunEvent.STOPPED, AutoRunEvent.NOTHING_LEFT) and str(fields.get("reason_code")).startswith(
        "AUTO_"
    ):
        return _reason(fields, texts)  # its title says already that auto-run has ended
    key = f"activity.auto.{event}" + (".on" if event == "started" and data.get("base_branch") else "")
    seconds = data.get("seconds")
    minutes = round(seconds / 60) if isinstance(seconds, (int, float)) else 0
    return _say(texts, key, reason=_reason(fields, texts), base=data.get("base_branch"), minutes=minutes)


def _decided(data: Fields, fields: Fields, texts: Texts) -> str:
    if "ready" in data and "runnable" in data:
        key = "activity.chosen" if fields.get("request_id") else "activity.chosen.none"
        return texts(key, ready=data["ready"], runnable=data["runnable"])
    if data.get("decided"):
        return _say(texts, f"activity.decided.{data['decided']}")
    key = f"activity.asked.{data.get('asked', '')}"
    return _say(texts, f"{key}.{data.get('when')}") or _say(texts, key)


def _changed(data: Fields, _fields: Fields, texts: Texts) -> str:
    key = data.get("key")
    if not key:
        return ""
    if key == "text":
        return texts("activity.edited.text")
    old, new = (_value(data.get(name), texts) for name in ("from", "to"))
    return texts("activity.edited", key=key, old=old, new=new)


def _value(value: object, texts: Texts) -> str:
    """Write a value of a request's metadata."""
    if value in (None, "", [], ()):
        return texts("activity.empty")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _cleaned(data: Fields, _fields: Fields, texts: Texts) -> str:
    what = next((name for name in ("removed", "failed") if isinstance(data.get(name), list)), None)
    return texts(f"activity.cleaned.{what}", count=len(data[what])) if what else ""


def _refused(_data: Fields, fields: Fields, texts: Texts) -> str:
    reason = _reason(fields, texts)
    return texts("activity.refused", reason=reason) if reason else ""


_SAYS: Mapping[str, Callable[[Fields, Fields, Texts], str]] = {
    ActivityKind.PROJECT_INITIALISED: lambda _data, _fields, texts: texts("activity.set_up"),
    ActivityKind.REQUEST_CREATED: lambda data, _fields, texts: texts(
        f"activity.created{'.found' if data.get('found_in') else ''}",
        title=data.get("title", ""),
        found_in=data.get("found_in", ""),
    ),
    ActivityKind.REQUEST_EDITED: _changed,
    ActivityKind.STATUS_CHANGED: _changed,
    ActivityKind.DECISION: _decided,
    ActivityKind.TRANSITION: _moved,
    ActivityKind.RECOVERY: lambda _data, fields, texts: _reason(fields, texts),
    ActivityKind.REFUSAL: _refused,
    ActivityKind.NOTE_FAILED: lambda data, _fields, texts: texts(
        "activity.not_notified", problem=data.get("problem", "")
    ),
    ActivityKind.CLEANED: _cleaned,
}
