"""A real DynamoDB Local for tests: one for all test processes, with a database of its own for each test that wants one.

Without `-sharedDb` it keeps one database per access key and region, so a fresh key is a fresh, empty store.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dynamo_keeper

if TYPE_CHECKING:
    from aiflow.adapters.dynamo.client import DynamoClient

REGION = "us-east-1"
_making = threading.Lock()


@dataclass(frozen=True)
class Dynamo:
    """Where a store answers, and the key of one database there."""

    endpoint: str
    key: str = field(default_factory=lambda: f"test{os.urandom(8).hex()}")

    @property
    def environ(self) -> dict[str, str]:
        """What a process needs so that `queue.store = <endpoint>` means this database."""
        return {
            "AIFLOW_QUEUE_STORE": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.key,
            "AWS_REGION": REGION,
        }

    def connect(self) -> DynamoClient:
        """Give the product's own client."""
        from aiflow.adapters.dynamo.client import StoreAddress, connect

        return connect(StoreAddress(self.endpoint, REGION, self.key, self.key))

    def client(self, **config: Any) -> Any:
        """Give a bare boto3 client, to look behind the product's back; one with a configuration is the caller's alone."""
        return _new_client(self.endpoint, self.key, **config) if config else _client(self.endpoint, self.key)


@functools.lru_cache(maxsize=4)
def _client(endpoint: str, key: str) -> Any:
    """Keep a client: to make one takes longer than most of what is asked of it, and a test asks again and again."""
    return _new_client(endpoint, key)


def _new_client(endpoint: str, key: str, **config: Any) -> Any:
    from botocore.config import Config

    config = {"max_pool_connections": 50, "parameter_validation": False, "user_agent": "tests", **config}
    with _making:
        return _session().create_client(
            "dynamodb",
            region_name=REGION,
            endpoint_url=endpoint,
            aws_access_key_id=key,
            aws_secret_access_key=key,
            config=Config(**config),
        )


@functools.cache
def _session() -> Any:
    """Give what makes clients, with boto3's description of DynamoDB in it: to make it takes longer than a client."""
    import botocore.session

    return botocore.session.Session()


@contextlib.contextmanager
def shared_endpoint(folder: Path, kind: str = "local") -> Iterator[str]:
    """Use the one store of this test session; the first who comes starts it."""
    folder.mkdir(exist_ok=True)
    with open(folder / "users", "ab") as users, open(folder / "start", "ab") as start:
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(start, fcntl.LOCK_EX)
        port = folder / "port"
        if not port.exists():
            command = [sys.executable, dynamo_keeper.__file__, str(folder), kind]
            keeper = subprocess.Popen(command, start_new_session=True)
            until = time.monotonic() + 90
            while not port.exists():
                assert keeper.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < until, f"{kind} did not start"
                time.sleep(0.05)
            keeper.returncode = 0  # it outlives us on purpose
        fcntl.flock(start, fcntl.LOCK_UN)
        yield f"http://127.0.0.1:{port.read_text()}"
