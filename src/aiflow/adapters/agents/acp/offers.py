"""What an agent offers at the begin of a session: its models and modes, and its ways to log in. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# How it is chosen where an agent has no options for it yet: the list, its key, what is in use, the method.
_OLDER = {
    "model": ("models", "availableModels", "modelId", "currentModelId", "session/set_model"),
    "mode": ("modes", "availableModes", "id", "currentModeId", "session/set_mode"),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """How something is chosen: what is offered, whether the wanted one is in use already, and the request for it."""

    values: tuple[str, ...]
    is_set: bool
    method: str
    params: Mapping[str, Any]


def choice_of(session: Mapping[str, Any], what: str, wanted: str) -> Choice | None:
    """Say how a session's model or mode is set to what is wanted; None if the agent offers no such choice."""
    for option in _dicts(session.get("configOptions")):
        if what in (option.get("category"), option.get("id")) and option.get("type") == "select":
            values = tuple(_values(option.get("options")))
            params = {"configId": option.get("id"), "value": wanted}
            return Choice(values, option.get("currentValue") == wanted, "session/set_config_option", params)
    name, listed, key, current, method = _OLDER[what]
    offer = session.get(name)
    if not isinstance(offer, dict):
        return None
    values = tuple(one[key] for one in _dicts(offer.get(listed)) if isinstance(one.get(key), str))
    return Choice(values, offer.get(current) == wanted, method, {_OLDER_PARAMS[what]: wanted})


_OLDER_PARAMS = {"model": "modelId", "mode": "modeId"}


def login_of(methods: object, environ: Mapping[str, str]) -> str | None:
    """Return the way to log in for which the environment has everything; none that would ask a person."""
    for method in _dicts(methods):
        login = method.get("id")
        names = [one.get("name") for one in _dicts(method.get("vars"))]
        if isinstance(login, str):
            # Without variables of its own a method's name is that of its key: `openai-api-key`.
            needed = names or [login.replace("-", "_").upper()]
            if all(isinstance(name, str) and environ.get(name) for name in needed):
                return login
    return None


def login_names(methods: object) -> list[str]:
    """Name an agent's ways to log in, as a person reads them."""
    named = []
    for method in _dicts(methods):
        texts = [text for key in ("name", "description") if isinstance(text := method.get(key), str) and text]
        if texts:
            named.append(": ".join(dict.fromkeys(texts)))
    return named


def _values(options: object) -> Iterator[str]:
    """Give the values of a select, those in groups too."""
    for option in _dicts(options):
        if isinstance(value := option.get("value"), str):
            yield value
        yield from _values(option.get("options"))


def _dicts(values: object) -> Iterator[dict[str, Any]]:
    """Give the objects of what should be a list of them."""
    return (value for value in values if isinstance(value, dict)) if isinstance(values, list) else iter(())
