"""Calls to anything that speaks DynamoDB (QUE-2): one client per process, foreign errors named by our reasons.

A call that failed without an answer may have happened: code that writes reads back.
"""

from __future__ import annotations

import functools
import random
import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiflow import __version__
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.messages.details import Words, words

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.next_action import NextAction

# The wait for one answer, and how often the client itself asks again: not if that took so long already that a
# person at the screen would wonder. Callers that need more patience retry outside.
CONNECT_SECONDS = 2.0
READ_SECONDS = 4.0
ATTEMPTS = 3
AGAIN_WITHIN_SECONDS = 3.0
PAUSE_SECONDS = 0.2
# An answer that takes longer than this is worth a word.
SLOW_SECONDS = 1.5
CONNECTIONS = 32
# DynamoDB Local and its like need a region and a key, and take any.
LOCAL_REGION = "us-east-1"

_THROTTLED = frozenset(
    (
        *("ProvisionedThroughputExceededException", "ThrottlingException", "Throttling", "RequestLimitExceeded"),
        *("LimitExceededException", "TooManyRequestsException", "SlowDown"),
    )
)
_REFUSED = frozenset(
    (
        *("AccessDeniedException", "AccessDenied", "UnrecognizedClientException", "InvalidSignatureException"),
        *("ExpiredTokenException", "ExpiredToken", "MissingAuthenticationTokenException", "InvalidClientTokenId"),
        *("IncompleteSignatureException", "SignatureDoesNotMatch", "NotAuthorized", "OptInRequired"),
    )
)
# AWS accepts what is signed a few minutes ago or ahead.
_CLOCK_CODES = frozenset({"RequestExpired", "RequestTimeTooSkewed", "RequestInTheFuture"})
_CLOCK_TEXT = re.compile(r"Signature (expired|not yet current)\b")
# Several threads may use a client at once, but not make one.
_making = threading.Lock()


class ConditionFailedError(Exception):
    """The item was not as the write required; nothing was written by this call."""


class NoTableError(Exception):
    """The store has no such table."""


class TableInUseError(Exception):
    """The table exists already, or is just being changed."""


_PASSING = frozenset(("STORE_UNREACHABLE", "STORE_THROTTLED"))
# What every answer to these has; without it, something else answers there.
_MEMBERS = {"query": "Items", "scan": "Items", "describe_table": "Table"}

_NAMED: dict[str, type[Exception]] = {
    "ConditionalCheckFailedException": ConditionFailedError,
    "ResourceNotFoundException": NoTableError,
    "TableNotFoundException": NoTableError,
    "ResourceInUseException": TableInUseError,
    "TableAlreadyExistsException": TableInUseError,
}


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where a store is and how it knows us; without an endpoint it is AWS, with the user's own credentials there.

    What stands here counts, and nothing of the environment: without it, the usual AWS variables and files do.
    """

    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    session_token: str | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.endpoint or f"AWS DynamoDB ({self.region or 'default region'})"


class DynamoClient:
    """One store; may be used by several threads at once."""

    def __init__(self, address: StoreAddress, client: Any, attempts: int = 1) -> None:
        self.name = address.name
        self._client = client
        self._attempts = attempts
        # Called for every answered call with the operation, what was asked, and the answer with its cost.
        self.observe: Callable[[str, dict[str, Any], dict[str, Any]], None] | None = None
        # What else an error reports: how to fix it, where that is known.
        self.help: dict[str, NextAction] = {}
        # Called, in another thread, for a call whose answer takes long.
        self.slow: Callable[[], None] | None = None

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        """Call one operation (`get_item`, …) and return its answer; trouble that may pass is asked again soon."""
        began, attempt = time.monotonic(), 1
        while True:
            try:
                return self._call_told(operation, params)
            except AiflowError as error:
                is_late = time.monotonic() - began >= AGAIN_WITHIN_SECONDS
                if error.reason_code not in _PASSING or attempt >= self._attempts or is_late:
                    raise
            time.sleep(random.uniform(0.5, 1) * PAUSE_SECONDS * 2**attempt)  # noqa: S311
            attempt += 1

    def _call_told(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        """Call an operation once, and say so where that takes long."""
        if self.slow is None:
            return self._call_once(operation, params)
        watch = threading.Timer(SLOW_SECONDS, self.slow)
        watch.daemon = True
        watch.start()
        try:
            return self._call_once(operation, params)
        finally:
            watch.cancel()

    def _call_once(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError

        if self.observe is not None and operation.endswith(("_item", "query", "scan")):
            params["ReturnConsumedCapacity"] = "INDEXES"
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**params)
        except ClientError as error:
            raise self._of_answer(error.response) from error
        except BotoCoreError as error:
            # What our own connections refuse comes wrapped.
            unsent = getattr(error.kwargs.get("error"), "words", None)
            raise (self._problem("STORE_UNREACHABLE", unsent) if unsent else self._without_answer(error)) from error
        except (OSError, ValueError) as error:  # a broken connection, or an answer that is none
            raise self._problem("STORE_UNREACHABLE", error) from error
        if _MEMBERS.get(operation, "ResponseMetadata") not in answer:
            raise self._problem("STORE_UNREACHABLE", words("store_problem.not_dynamodb"))
        if self.observe is not None:
            self.observe(operation, params, answer)
        return answer

    def without_table(self, table: str) -> AiflowError:
        """Report that a table is gone that was there when the store was opened: adding a task creates it again."""
        return self._problem("STORE_UNREACHABLE", words("store_problem.table_gone", table=table))

    def _of_answer(self, response: dict[str, Any]) -> Exception:
        """Name an error that the store answered with."""
        told = response.get("Error", {})
        code, text = str(told.get("Code", "")), str(told.get("Message", ""))
        if code in _NAMED:
            return _NAMED[code](text)
        problem = f"{code}: {text}" if text else code
        if code in _THROTTLED:
            return self._problem("STORE_THROTTLED", problem)
        if code in _CLOCK_CODES or (code in _REFUSED and _CLOCK_TEXT.match(text)):
            # We slept between signing and sending, or the clock was set: it passes, like a store that is away.
            return self._problem("STORE_UNREACHABLE", words("store_problem.clock", problem=_line(problem)))
        if code in _REFUSED:
            return self._problem("STORE_REFUSED", problem)
        status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        return self._problem("STORE_REFUSED" if 400 <= status < 500 else "STORE_UNREACHABLE", problem)

    def _without_answer(self, error: Exception) -> AiflowError:
        """Name an error of the client itself: no way to the store, or nothing to go there with."""
        from botocore import exceptions

        ours = (
            *(exceptions.NoCredentialsError, exceptions.PartialCredentialsError, exceptions.ProfileNotFound),
            *(exceptions.NoRegionError, exceptions.InvalidRegionError, exceptions.CredentialRetrievalError),
            *(exceptions.ConfigParseError, exceptions.ConfigNotFound, exceptions.TokenRetrievalError),
            *(exceptions.SSOError, exceptions.NoAuthTokenError),
        )
        return self._problem("STORE_CREDENTIALS_MISSING" if isinstance(error, ours) else "STORE_UNREACHABLE", error)

    def _problem(self, reason_code: str, problem: object) -> AiflowError:
        return EnvironmentProblemError(reason_code=reason_code, endpoint=self.name, problem=_line(problem), **self.help)


def connect(address: StoreAddress) -> DynamoClient:
    """Make the client for a store; heavy, so that a process does it once and only if it needs the queue."""
    return DynamoClient(address, bare_client(address), ATTEMPTS)


def bare_client(address: StoreAddress) -> Any:
    """Make botocore's own client for a store, which is also boto3's."""
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": 1},
        max_pool_connections=CONNECTIONS,
        parameter_validation=False,
        # Who we are; botocore's own description is built again for each call, a seventh of its time.
        user_agent=f"aiflow/{__version__}",
        # A proxy for the way out is none for a store of this machine.
        proxies={} if address.endpoint else None,
    )
    try:
        with _making:
            client = _session_of(address).create_client(
                "dynamodb",
                region_name=address.region,
                endpoint_url=address.endpoint,
                aws_access_key_id=address.access_key,
                aws_secret_access_key=address.secret_key,
                aws_session_token=address.session_token,
                config=config,
            )
    except (BotoCoreError, ValueError) as error:
        code = "STORE_CREDENTIALS_MISSING"
        raise EnvironmentProblemError(reason_code=code, endpoint=address.name, problem=_line(error)) from error
    client.meta.events.register("before-parse.dynamodb", _check_answer)
    return client


def _check_answer(response_dict: dict[str, Any], **_about: Any) -> None:
    """Refuse what is not DynamoDB's answer: botocore takes a proxy's page for one that says nothing, and all is well.

    That every answer is an object is all there is to see at a glance; an error may come without one.
    """
    body, status = response_dict["body"].strip(), response_dict["status_code"]
    is_object = body.startswith(b"{") and body.endswith(b"}")
    if not is_object and (body or status < 300):
        problem = words("store_problem.not_dynamodb_http", status=status)
        raise ValueError(problem)


def _session_of(address: StoreAddress) -> Any:
    """Give what makes clients: at AWS, with the user's own profiles, files and variables."""
    import botocore.session

    if address.endpoint is None:
        return botocore.session.Session()
    return _own_session()


@functools.cache
def _own_session() -> Any:
    """Give what makes clients for endpoints: nothing of the user's AWS profiles, files and variables counts there.

    A profile that is named and not there would end it, whatever the key. Whom to trust for https stays the user's word.
    It knows no key, so that one serves all stores: to make it takes longer than to make a client.
    """
    import os

    import botocore.session

    usual = botocore.session.Session.SESSION_VARIABLES
    own = {name: (None, None, *rest) for name, (_file, _variable, *rest) in usual.items() if name != "ca_bundle"}
    for name in ("config_file", "credentials_file"):
        own[name] = (None, None, os.devnull, None)
    session = botocore.session.Session(session_vars=own)
    session.register_component("data_loader", _loader())
    return session


@functools.cache
def _loader() -> Any:
    """Give what reads botocore's description of DynamoDB: it takes longer than all the rest, and is kept once read."""
    import botocore.loaders

    return botocore.loaders.create_loader()


def _line(problem: object) -> str:
    """Write what somebody else says as a part of our own sentence: in one line, without their full stop."""
    return problem if isinstance(problem, Words) else " ".join(str(problem).split()).removesuffix(".")
