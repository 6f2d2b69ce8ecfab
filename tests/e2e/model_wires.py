"""The three APIs that coding agents speak to their models: what is asked, read; what is answered, written as events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from e2e import model_errors
from e2e.model_turns import Action, Answer, Asked, Edit, Read, Refuse, Shell, Write, filled
from e2e.model_words import Call, Event, Heard, Usage, absolute, folder_in, listen, new_id, plain, text_of


class Anthropic:
    """Anthropic's Messages, as claude speaks it."""

    path = "/v1/messages"
    refusal = staticmethod(model_errors.anthropic)

    @staticmethod
    def hear(body: Mapping[str, Any]) -> Heard:
        """Read a request."""
        parts = []
        for message in body.get("messages", []):
            content = message["content"]
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                kind = "result" if block["type"] == "tool_result" else message["role"]
                parts.append((kind, text_of(block)))
        tools = {tool["name"]: tool for tool in body.get("tools", [])}
        schema = tools["StructuredOutput"]["input_schema"] if "StructuredOutput" in tools else None
        return Heard(tuple(tools), *listen(parts), schema, folder_in(body))

    @staticmethod
    def call_of(action: Action, asked: Asked) -> Call:
        """Choose the tool."""
        match action:
            case Shell(command):
                return Call("Bash", {"command": command, "description": "A step of the script"})
            case Write(path, text):
                return Call("Write", {"file_path": absolute(path, asked), "content": text})
            case Edit(path, old, new):
                return Call("Edit", {"file_path": absolute(path, asked), "old_string": old, "new_string": new})
            case Read(path):
                return Call("Read", {"file_path": absolute(path, asked)})
            case Answer(value) if asked.schema is not None:
                return Call("StructuredOutput", filled(value, asked.schema))
        return plain(action)

    @staticmethod
    def events(call: Call, model: str, usage: Usage) -> list[Event]:
        """Write an answer."""
        stop = "tool_use" if call.name else "end_turn"
        counted = {**usage._asdict(), "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {"id": new_id("msg"), "type": "message", "role": "assistant", "model": model, "content": []}
        ends: dict[str, Any] = {"stop_reason": None, "stop_sequence": None}
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": call.text}
        if call.name:
            block = {"type": "tool_use", "id": new_id("toolu"), "name": call.name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
        return [
            {"type": "message_start", "message": {**message, **ends, "usage": counted}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {**ends, "stop_reason": stop}, "usage": counted},
            {"type": "message_stop"},
        ]

    @staticmethod
    def whole(call: Call, model: str, usage: Usage) -> dict[str, Any]:
        """Write an answer as one document."""
        start, block, *_ = Anthropic.events(call, model, usage)
        assert isinstance(start, dict) and isinstance(block, dict)
        content = {**block["content_block"], **({"input": call.arguments} if call.name else {"text": call.text})}
        return {**start["message"], "content": [content], "stop_reason": "tool_use" if call.name else "end_turn"}

    @staticmethod
    def failure(refuse: Refuse) -> list[Event]:
        """Say an error behind a status of 200."""
        return [model_errors.anthropic(refuse)[2]]


class Responses:
    """OpenAI's Responses, as codex speaks it."""

    path = "/responses"
    refusal = staticmethod(model_errors.openai)

    @staticmethod
    def hear(body: Mapping[str, Any]) -> Heard:
        """Read a request."""
        given = body.get("input", [])
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        parts = [
            ("result" if item.get("type", "").endswith("_output") else item.get("role", "assistant"), text_of(item))
            for item in items
        ]
        tools = tuple(tool.get("name") or tool["type"] for tool in body.get("tools", []))
        schema = body.get("text", {}).get("format", {}).get("schema")
        return Heard(tools, *listen(parts), schema, folder_in(body))

    @staticmethod
    def call_of(action: Action, asked: Asked) -> Call:
        """Choose the tool; codex writes files by patches, which it finds in the command of its shell tool."""
        match action:
            case Shell(command):
                return _codex_shell(command, asked)
            case Write(path, text):
                added = "".join(f"+{line}\n" for line in text.splitlines())
                return _codex_shell(_patch(f"*** Add File: {path}\n{added}"), asked)
            case Edit(path, old, new):
                lines = [*(f"-{line}" for line in old.splitlines()), *(f"+{line}" for line in new.splitlines())]
                changed = "".join(f"{line}\n" for line in lines)
                return _codex_shell(_patch(f"*** Update File: {path}\n@@\n{changed}"), asked)
            case Read(path):
                return _codex_shell(f"cat '{path}'", asked)
        return plain(action)

    @staticmethod
    def events(call: Call, model: str, usage: Usage) -> list[Event]:
        """Write an answer."""
        response = {"id": new_id("resp"), "object": "response", "created_at": 0, "model": model, "output": []}
        item: dict[str, Any] = {
            "type": "message",
            "id": new_id("msg"),
            "role": "assistant",
            "content": [{"type": "output_text", "text": call.text, "annotations": []}],
        }
        if call.name:
            arguments = json.dumps(call.arguments)
            namespace, _, name = call.name.rpartition("::")  # codex's form of a tool of an MCP server
            item = {"type": "function_call", "id": new_id("fc"), "call_id": new_id("call"), "name": name}
            item |= {"arguments": arguments} | ({"namespace": namespace} if namespace else {})
        counted = {**usage._asdict(), "total_tokens": sum(usage)}
        counted |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        ended = {**response, "status": "completed", "output": [item], "usage": counted}
        return [
            {"type": "response.created", "response": {**response, "status": "in_progress"}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": ended},
        ]

    @staticmethod
    def whole(call: Call, model: str, usage: Usage) -> dict[str, Any]:
        """Write an answer as one document."""
        last = Responses.events(call, model, usage)[-1]
        assert isinstance(last, dict)
        return dict(last["response"])

    @staticmethod
    def failure(refuse: Refuse) -> list[Event]:
        """Say an error behind a status of 200."""
        error = model_errors.openai(refuse)[2]["error"]
        failed = {"id": new_id("resp"), "object": "response", "status": "failed", "output": [], "error": error}
        return [{"type": "response.failed", "response": failed}]


class Chat:
    """OpenAI's Chat Completions, as opencode speaks it to a provider of one's own."""

    path = "/chat/completions"
    refusal = staticmethod(model_errors.openai)

    @staticmethod
    def hear(body: Mapping[str, Any]) -> Heard:
        """Read a request."""
        parts = [
            ("result" if message["role"] == "tool" else message["role"], text_of(message.get("content")))
            for message in body.get("messages", [])
        ]
        tools = tuple(tool["function"]["name"] for tool in body.get("tools", []))
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        return Heard(tools, *listen(parts), schema, folder_in(body))

    @staticmethod
    def call_of(action: Action, asked: Asked) -> Call:
        """Choose the tool."""
        match action:
            case Shell(command):
                return Call("bash", {"command": command, "description": "A step of the script"})
            case Write(path, text):
                return Call("write", {"filePath": absolute(path, asked), "content": text})
            case Edit(path, old, new):
                return Call("edit", {"filePath": absolute(path, asked), "oldString": old, "newString": new})
            case Read(path):
                return Call("read", {"filePath": absolute(path, asked)})
        return plain(action)

    @staticmethod
    def events(call: Call, model: str, usage: Usage) -> list[Event]:
        """Write an answer."""
        chunk = {"id": new_id("chatcmpl"), "object": "chat.completion.chunk", "created": 0, "model": model}
        delta: dict[str, Any] = {"role": "assistant", "content": call.text or None}
        if call.name:
            function = {"name": call.name, "arguments": json.dumps(call.arguments)}
            delta["tool_calls"] = [{"index": 0, "id": new_id("call"), "type": "function", "function": function}]
        counted = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
        reason = "tool_calls" if call.name else "stop"
        return [
            {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {
                **chunk,
                "choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
                "usage": {**counted, "total_tokens": sum(usage)},
            },
            "[DONE]",
        ]

    @staticmethod
    def whole(call: Call, model: str, usage: Usage) -> dict[str, Any]:
        """Write an answer as one document."""
        first, last, _ = Chat.events(call, model, usage)
        assert isinstance(first, dict) and isinstance(last, dict)
        choice = {**last["choices"][0], "message": first["choices"][0]["delta"]}
        return {**last, "object": "chat.completion", "choices": [choice]}

    @staticmethod
    def failure(refuse: Refuse) -> list[Event]:
        """Say an error behind a status of 200."""
        return [model_errors.openai(refuse)[2], "[DONE]"]


Wire = type[Anthropic] | type[Responses] | type[Chat]
WIRES: tuple[Wire, ...] = (Anthropic, Responses, Chat)


def _codex_shell(command: str, asked: Asked) -> Call:
    if "exec_command" in asked.tools:
        return Call("exec_command", {"cmd": command})
    if "shell_command" in asked.tools:
        return Call("shell_command", {"command": command})
    return Call("shell", {"command": ["bash", "-c", command]})


def _patch(change: str) -> str:
    return f"apply_patch <<'EOF_OF_PATCH'\n*** Begin Patch\n{change}*** End Patch\nEOF_OF_PATCH"
