"""The built-in agent for trying aiflow out (AGT-1): deterministic, no key, no network, standard library only.

A program of its own that speaks the protocol of AGT-2, as any agent would. It does what the request's text says in
fenced blocks, so that a backlog can be written for it:

    ## A step's title              one step per second-level heading, or one step in all
    ```write path/to/file          the file gets this content
    ```append path/to/file         the content is added to the file
    ```delete path/to/file
    ```ask                         the question is asked once; `{answer}` in write and append is what the person said
    ```reject                      the reviewer finds this

`attempt=1` or `attempt=2` behind a path keeps a block to that attempt of the step. Without any block the step adds a
line to `DEMO.md`.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

FENCE = re.compile(r"^```(write|append|delete|ask|reject)\b[ \t]*([^\n]*)\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^## +(.+?)[ \t]*$", re.MULTILINE)
ATTEMPT = re.compile(r"(?:^|\s)attempt=(\d+)\s*$")


class Block(NamedTuple):
    """One instruction of a request's text."""

    kind: str
    path: str
    attempt: int | None
    text: str


class Part(NamedTuple):
    """The part of a text that one step is about."""

    title: str
    text: str
    blocks: tuple[Block, ...]


def main() -> int:
    """Read the call, play the role, write the answer."""
    call = json.load(sys.stdin.buffer)
    call["request"]["body"] = call["request"]["body"].replace("\r\n", "\n")
    answer = {"planner": plan, "implementer": implement, "qa": review}[call["role"]](call)
    target = Path(os.environ["AIFLOW_RESULT"])
    target.write_text(json.dumps(answer, ensure_ascii=False), encoding="utf-8")
    return 0


def say(text: str) -> None:
    """Write a line to the step's log."""
    sys.stdout.buffer.write(f"[demo] {text}\n".encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def parts_of(request: dict[str, Any]) -> list[Part]:
    """Cut a request's text into steps at its second-level headings that have something to do below them."""
    body = request["body"]
    marks = [(match.start(), match[1]) for match in HEADING.finditer(_without_fences(body))]
    parts = [_part(title, body[start:end]) for (start, title), (end, _) in pairwise([*marks, (len(body), "")])]
    return [part for part in parts if part.blocks] or [_part(request["title"], body)]


def _without_fences(body: str) -> str:
    """Blank out fenced blocks, so that a heading inside one is none; offsets stay."""
    return FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), body)


def _part(title: str, text: str) -> Part:
    blocks = []
    for kind, rest, content in FENCE.findall(text):
        attempt = ATTEMPT.search(rest)
        path = rest[: attempt.start()].strip() if attempt else rest.strip()
        blocks.append(Block(kind, path, int(attempt[1]) if attempt else None, content))
    return Part(title, text, tuple(blocks))


def plan(call: dict[str, Any]) -> dict[str, Any]:
    """Make one step of every part."""
    parts = parts_of(call["request"])
    say(f"{len(parts)} step(s)")
    return {
        "steps": [
            {
                "id": f"S{number:02d}",
                "title": part.title,
                "instructions": FENCE.sub("", part.text).strip(),
                "targets": {"paths": [block.path for block in part.blocks if block.path]},
            }
            for number, part in enumerate(parts[:99], 1)
        ]
    }


def implement(call: dict[str, Any]) -> dict[str, Any]:
    """Do what a step's blocks say."""
    part = _part_of_step(call)
    answers = {given["question"]: given["answer"] for given in call["answers"]}
    question = next((block.text.strip() for block in part.blocks if block.kind == "ask"), None)
    if question and question not in answers:
        say(f"asks: {question}")
        return {"status": "needs_input", "question": question}
    answer = answers[question] if question else next(reversed(answers.values()), "")
    blocks = [block for block in part.blocks if block.kind in ("write", "append", "delete")]
    for block in blocks:
        if block.attempt in (None, call["attempt"]):
            _apply(block, answer)
    if not part.blocks:
        _apply(Block("append", "DEMO.md", None, f"- {call['request']['id']}: {part.title}\n"), "")
    time.sleep(float(os.environ.get("AIFLOW_DEMO_SECONDS", "0")))
    return {"status": "done", "summary": part.title}


def _part_of_step(call: dict[str, Any]) -> Part:
    parts = parts_of(call["request"])
    return parts[min(int(call["step"]["id"][1:]), len(parts)) - 1]


def _apply(block: Block, answer: str) -> None:
    """Write, extend or delete one file below the worktree."""
    path = Path(block.path)
    if path.is_absolute() or ".." in path.parts:
        raise SystemExit(f"{path} is outside the worktree")
    text = block.text.replace("{answer}", answer)
    say(f"{block.kind} {path}")
    if block.kind == "delete":
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if block.kind == "append" else "w", encoding="utf-8") as file:
        file.write(text)


def review(call: dict[str, Any]) -> dict[str, Any]:
    """Pass everything but what a text tells to reject."""
    blocks = [block for block in _part_of_step(call).blocks if block.kind == "reject"]
    findings = [block.text.strip() for block in blocks if block.attempt in (None, call["attempt"])]
    say(f"{len(findings)} finding(s)")
    return {"verdict": "fail" if findings else "pass", "findings": findings}


if __name__ == "__main__":
    sys.exit(main())
