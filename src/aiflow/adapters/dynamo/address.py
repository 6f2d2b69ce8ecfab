"""Which store is meant (QUE-2): the settings and the environment say it, and who we are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.adapters.dynamo.client import LOCAL_REGION, StoreAddress
from aiflow.settings.table import AWS_STORE

if TYPE_CHECKING:
    from collections.abc import Mapping

# Everybody who names the same URL and no credentials of their own means the same database.
COMMON_KEY = "aiflow"


def shared_address(store: str, environ: Mapping[str, str]) -> StoreAddress:
    """Return the address of a store that is not this machine's own: AWS, or whatever answers at a URL.

    For AWS, all of its usual variables and files count. A store at a URL takes any key, and DynamoDB Local keeps one
    database for each: the environment's if it has one, else one that all have in common. Profiles and credential files
    are for AWS, and are not sent to anything else.
    """
    # Amazon's other tools read AWS_REGION; botocore knows only the second name.
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or None
    if store == AWS_STORE:
        return StoreAddress(region=region)
    key, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    region = region or LOCAL_REGION
    if not key or not secret:
        return StoreAddress(store, region, COMMON_KEY, COMMON_KEY)
    return StoreAddress(store, region, key, secret, environ.get("AWS_SESSION_TOKEN") or None)


def local_address(endpoint: str, key: str) -> StoreAddress:
    """Return the address of this machine's own store; nothing of the user's AWS environment counts (QUE-2a)."""
    return StoreAddress(endpoint, LOCAL_REGION, key, key)
