"""Take a webhook's delivery (ISS-1): checked, and no more than a hint to look at an issue now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.issue_ways import request_id_of
from aiflow.domain.issues.webhook import hinted_issue, is_signed
from aiflow.errors import AiflowError, EnvironmentProblemError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.request import RequestId


def take_delivery(secret: str, repo: str, body: bytes, signature: str, hint: Callable[[int], None]) -> RequestId | None:
    """Have the issue of a delivery looked at; None if it is about no issue of ours. What is forged does nothing.

    Nothing else in it is believed, so the same delivery twice, or an old one, is one look more.
    """
    if not secret or not repo:
        raise EnvironmentProblemError(reason_code="WEBHOOK_NOT_SET")
    if not is_signed(secret, body, signature):
        raise AiflowError(reason_code="SIGNATURE_INVALID")
    number = hinted_issue(body, repo)
    if number is None:
        return None
    hint(number)
    return request_id_of(number)
