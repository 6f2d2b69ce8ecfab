"""An engine with a few ports only: whatever a test does not give must not be asked."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, cast

from aiflow.usecases.engine import Charge, Engine, Voice


def engine_of(voice: Voice, **ports: Any) -> Engine:
    """Put an engine together from the ports that a test gives."""
    unused = {each.name for each in fields(Engine) if each.default is MISSING} - ports.keys() - {"voice", "charge"}
    return cast(Engine, cast(Any, Engine)(**ports, **dict.fromkeys(unused), voice=voice, charge=Charge()))
