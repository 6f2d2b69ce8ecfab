"""A conversation with an agent in the Agent Client Protocol: from its hello to the end of one turn.

Everything that happens is reported as an event; `events` interprets the events. A permission request that a
person has to answer, and a limit that the agent waits for in silence, end the turn: aiflow waits, and shows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acp import PROTOCOL_VERSION, RequestError
from acp.connection import Connection
from acp.schema import ReadTextFileRequest, RequestPermissionRequest, WriteTextFileRequest

from aiflow import __version__
from aiflow.adapters.agents.acp.files import Folders, MissingError, RefusedError
from aiflow.adapters.agents.acp.offers import choice_of, login_of
from aiflow.adapters.agents.acp.own_log import plain
from aiflow.adapters.agents.acp.permissions import (
    Option,
    PermissionRules,
    PermissionVerdict,
    PermissionWish,
    Policy,
    decide,
)
from aiflow.adapters.agents.acp.troubles import AUTH_CODES, OURS, is_limit
from aiflow.adapters.agents.acp.updates import slim
from aiflow.adapters.secrets import Masker

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.adapters.agents.acp.wire import Wire

    Say = Callable[..., None]

# The protocol's code for something that is not there, and one of our own.
FILE_MISSING, FILE_REFUSED = -32002, -32001
CANCEL_SECONDS = 5.0
LOOK_SECONDS = 0.2
# How long nothing may come before an agent is taken to have repeated everything, and how long it may repeat.
SETTLE_SECONDS, MOST_SETTLE_SECONDS = 0.4, 10.0
# Updates that show that the agent is still working.
_WORK = frozenset({"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"})


@dataclass(frozen=True, slots=True)
class CallOrder:
    """What the conversation is to be about."""

    cwd: str
    prompt: str
    session_id: str | None
    model: str
    mode: str
    folders: Folders
    rules: PermissionRules
    patience_seconds: float
    mask: Callable[[str], str] = str


def order_of(document: dict[str, Any]) -> CallOrder:
    """Read what the driver wrote."""
    is_reader = document["role"] != "implementer"
    return CallOrder(
        cwd=document["cwd"],
        prompt=document["prompt"],
        session_id=document["session_id"],
        model=document["model"],
        mode=document["mode"],
        folders=Folders((document["cwd"], *document["folders"]), not is_reader, tuple(document["own"])),
        rules=PermissionRules(
            Policy(document["permissions"]),
            is_reader,
            document["is_confined"],
            tuple((what, answer) for what, answer in document["answers"]),
            document.get("may_run") is True,
        ),
        patience_seconds=document["patience_seconds"],
        # The agent's environment is ours: what it could name of it is masked here as it will be in the question.
        mask=Masker(os.environ).mask_text,
    )


class Conversation:
    """One turn with one agent."""

    def __init__(self, order: CallOrder, say: Say) -> None:
        self._order = order
        self._say = say
        self._session_id: str | None = None
        self._is_replay = False
        self._doing = "initialize"
        self._over = asyncio.Event()
        self._question: PermissionWish | None = None
        self._limit: str | None = None
        self._limit_at = 0.0
        self._update_at = 0.0

    async def hold(self, wire: Wire) -> bool:
        """Hold the conversation; False if the agent went away in the middle of it."""
        async with Connection(self._serve, wire) as connection:
            try:
                await self._talk(connection)
            except RequestError as error:
                self._say("failed", doing=self._doing, code=error.code, message=str(error), data=error.data)
            except ConnectionError:
                return False
        return True

    def update(self, params: dict[str, Any]) -> None:
        """Take what the agent reports about its session; what it repeats of earlier turns is no news."""
        self._update_at = asyncio.get_running_loop().time()
        update = params.get("update")
        if not isinstance(update, dict):
            return
        if update.get("sessionUpdate") in _WORK:
            self._limit = None
        if not self._is_replay or update.get("sessionUpdate") == "usage_update":
            self._say("update", update=slim(update), is_replay=self._is_replay)

    def complain(self, line: str) -> None:
        """Take a line of the agent's own log."""
        self._say("complaint", text=line)
        if is_limit(line):
            self._limit, self._limit_at = line, asyncio.get_running_loop().time()

    async def _talk(self, connection: Connection) -> None:
        hello = await self._request(connection, "initialize", _hello())
        self._say("agent", info=hello.get("agentInfo"), logins=hello.get("authMethods"))
        if hello.get("protocolVersion") != PROTOCOL_VERSION:
            raise RequestError(OURS, "acp.version", {"version": str(hello.get("protocolVersion"))})
        session = await self._open(connection, hello)
        await self._choose(connection, session, "model", self._order.model)
        await self._choose(connection, session, "mode", self._order.mode)
        await self._prompt(connection)

    async def _request(self, connection: Connection, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._doing = method
        answer = await connection.send_request(method, params)
        return answer if isinstance(answer, dict) else {}

    async def _open(self, connection: Connection, hello: dict[str, Any]) -> dict[str, Any]:
        """Continue the earlier session or begin one, logged in where the environment has what that needs."""
        can = hello.get("agentCapabilities")
        can_load = isinstance(can, dict) and can.get("loadSession") is True
        place = {"cwd": self._order.cwd, "mcpServers": []}
        if self._order.session_id is not None:
            return await self._go_on(connection, place, can_load=can_load)
        try:
            session = await self._request(connection, "session/new", place)
        except RequestError as error:
            login = login_of(hello.get("authMethods"), os.environ)
            if error.code not in AUTH_CODES or login is None:
                raise
            await self._request(connection, "authenticate", {"methodId": login})
            session = await self._request(connection, "session/new", place)
        self._session_id = session.get("sessionId")
        if not isinstance(self._session_id, str):
            raise RequestError(OURS, "acp.no_session_id", {})
        self._say("session", id=self._session_id, can_go_on=can_load)
        return session

    async def _go_on(self, connection: Connection, place: dict[str, Any], *, can_load: bool) -> dict[str, Any]:
        self._doing, self._session_id = "session/load", self._order.session_id
        if not can_load:
            raise RequestError(OURS, "acp.cannot_go_on", {})
        self._is_replay = True
        session = await self._request(connection, "session/load", {**place, "sessionId": self._session_id})
        await self._settle()
        self._is_replay = False
        self._say("session", id=self._session_id, can_go_on=True)
        return session

    async def _settle(self) -> None:
        """Wait until the agent has no more to repeat: some continue that after their answer."""
        loop = asyncio.get_running_loop()
        until = loop.time() + MOST_SETTLE_SECONDS
        while loop.time() < min(until, self._update_at + SETTLE_SECONDS):
            await asyncio.sleep(SETTLE_SECONDS / 4)

    async def _choose(self, connection: Connection, session: dict[str, Any], what: str, wanted: str) -> None:
        """Set the model or the mode that the settings name; one that is set already is left alone."""
        if not wanted:
            return
        self._doing = what
        choice = choice_of(session, what, wanted)
        if choice is None:
            raise RequestError(OURS, f"acp.no_choice_of_{what}", {})
        if choice.is_set:
            return
        if wanted not in choice.values:
            offered = ", ".join(choice.values)[:1000]
            raise RequestError(OURS, "acp.not_offered", {"wanted": wanted, "offered": offered})
        await connection.send_request(choice.method, {"sessionId": self._session_id, **choice.params})

    async def _prompt(self, connection: Connection) -> None:
        """Give the prompt and wait for the end of the turn, or end it."""
        text = {"type": "text", "text": self._order.prompt}
        params = {"sessionId": self._session_id, "prompt": [text]}
        turn = asyncio.ensure_future(self._request(connection, "session/prompt", params))
        watch = asyncio.ensure_future(self._watch())
        await asyncio.wait({turn, watch}, return_when=asyncio.FIRST_COMPLETED)
        watch.cancel()
        if self._over.is_set():
            with contextlib.suppress(ConnectionError):
                await connection.send_notification("session/cancel", {"sessionId": self._session_id})
            await asyncio.wait({turn}, timeout=CANCEL_SECONDS)
            self._close(turn)
            return
        answer = await turn
        self._say("ended", reason=answer.get("stopReason"), usage=answer.get("usage"), meta=answer.get("_meta"))

    def _close(self, turn: asyncio.Future[dict[str, Any]]) -> None:
        """Say why we ended the turn ourselves."""
        if turn.done():
            turn.exception()  # whatever came of it, it is no longer of interest
        if self._question is not None:
            names = [option.name for option in self._question.options]
            self._say("asked", what=self._question.what, choices=names)
        else:
            self._say("failed", doing="session/prompt", code=429, message=plain(self._limit or ""), data=None)

    async def _watch(self) -> None:
        """Wait until the turn has to end: a person is asked, or nothing came after a limit for a while."""
        loop = asyncio.get_running_loop()
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), LOOK_SECONDS)
            if self._limit is not None and loop.time() - self._limit_at >= self._order.patience_seconds:
                self._over.set()

    async def _serve(self, method: str, params: Any, is_notification: bool) -> Any:  # noqa: FBT001
        """Answer a request of the agent."""
        if method == "session/request_permission":
            return self._permit(RequestPermissionRequest.model_validate(params))
        if method == "fs/read_text_file":
            read = ReadTextFileRequest.model_validate(params)
            return self._file("read", read.path, lambda path: self._order.folders.read(path, read.line, read.limit))
        if method == "fs/write_text_file":
            write = WriteTextFileRequest.model_validate(params)
            return self._file("write", write.path, lambda path: self._order.folders.write(path, write.content))
        if is_notification:
            return None
        raise RequestError.method_not_found(method)

    def _permit(self, request: RequestPermissionRequest) -> dict[str, Any]:
        wish = wish_of(request, self._order.mask)
        decision = decide(wish, self._order.rules, self._order.folders.find)
        self._say("permission", what=wish.what, verdict=decision.verdict, why=decision.why)
        if decision.verdict is PermissionVerdict.ASKED:
            self._question = self._question or wish
            self._over.set()
        if decision.option_id is None or self._over.is_set():
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": decision.option_id}}

    def _file(self, action: str, path: str, act: Callable[[str], str | None]) -> dict[str, Any]:
        try:
            content = act(path)
        except RefusedError as error:
            self._say("file", action=action, path=path, refused=str(error))
            code = FILE_MISSING if isinstance(error, MissingError) else FILE_REFUSED
            raise RequestError(code, f"{path}: {error}", None) from None
        self._say("file", action=action, path=path, refused=None)
        return {} if content is None else {"content": content}


def _hello() -> dict[str, Any]:
    """Say who we are, and what the agent may ask of us: files, but no terminal, since it can run commands itself."""
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": False},
        "clientInfo": {"name": "aiflow", "title": "aiflow", "version": __version__},
    }


def wish_of(request: RequestPermissionRequest, mask: Callable[[str], str]) -> PermissionWish:
    """Read a permission request."""
    call = request.tool_call
    diffs = (getattr(part, "path", None) for part in call.content or ())
    paths = dict.fromkeys([*(place.path for place in call.locations or ()), *filter(None, diffs)])
    options = (Option(option.option_id, option.name, option.kind) for option in request.options)
    return PermissionWish(call.title or "", call.kind or "other", tuple(paths), tuple(options), mask)
