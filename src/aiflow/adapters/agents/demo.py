"""The built-in agent for trying aiflow out (AGT-1): deterministic, no key, no network, standard library only.

A program of its own that speaks the protocol of AGT-2, as any agent would. It does what the request's text says in
fenced blocks, so that a backlog can be written for it:

    ## A step's title              one step per second-level heading, or one step in all
    ```write path/to/file          the file gets this content
    ```append path/to/file         the content is added to the file
    ```replace path/to/file        the lines above a line `=>` are replaced by those below it
    ```delete path/to/file
    ```ask                         the question is asked once; `{answer}` in a block's text is what the person said,
                                   `{answer!r}` the same as a literal in code
    ```reject                      the reviewer finds this

Work that was sent back is continued with the blocks of the person's comment alone.

`attempt=1` or `attempt=2` after a path keeps a block to that attempt of the step. Without any block the step adds a
line to `DEMO.md`. In a merge conflict it keeps the lines of both sides.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from itertools import pairwise

TYPE_CHECKING = False  # `typing` and `pathlib` take longer to import than all else that this does
if TYPE_CHECKING:
    from typing import Any

FENCE = re.compile(
    r"^```(write|append|replace|delete|ask|reject)\b[ \t]*([^\n]*)\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE
)
HEADING = re.compile(r"^## +(.+?)[ \t]*$", re.MULTILINE)
ATTEMPT = re.compile(r"(?:^|\s)attempt=(\d+)\s*$")
ANSWER = re.compile(r"\{answer(!r)?\}")
ARROW = re.compile(r"^=>[ \t]*\r?\n", re.MULTILINE)
# What git writes around the two sides; with `merge.conflictStyle = diff3` what both came from is between them.
CONFLICT = r"(?ms)^<{7} [^\n]*\n(?P<ours>.*?)(?:^\|{7}[^\n]*\n.*?)?^={7}\r?\n(?P<theirs>.*?)^>{7} [^\n]*(?:\n|\Z)"


class DemoBlock:
    """One instruction of a request's text."""

    def __init__(self, kind: str, path: str, attempt: int | None, text: str) -> None:
        self.kind, self.path, self.attempt, self.text = kind, path, attempt, text


class DemoPart:
    """The part of a text that one step is about."""

    def __init__(self, title: str, text: str, blocks: tuple[DemoBlock, ...]) -> None:
        self.title, self.text, self.blocks = title, text, blocks


def main() -> int:
    """Read the call, play the role, write the answer."""
    call = json.load(sys.stdin.buffer)
    call["request"]["body"] = call["request"]["body"].replace("\r\n", "\n")
    answer = {"planner": plan, "implementer": implement, "qa": review}[call["role"]](call)
    with open(os.environ["AIFLOW_RESULT"], "w", encoding="utf-8") as target:
        target.write(json.dumps(answer, ensure_ascii=False))
    return 0


def say(text: str) -> None:
    """Write a line to the step's log."""
    sys.stdout.buffer.write(f"[demo] {text}\n".encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def parts_of(call: dict[str, Any]) -> list[DemoPart]:
    """Cut a request's text into steps at its second-level headings that have something to do below them.

    Of work that was sent back only what the person said is left to do.
    """
    request, said = call["request"], _said(call)
    if said and (call.get("former") or {}).get("is_continued"):
        return [_part(said.splitlines()[0], said)]
    body = request["body"]
    marks = [(match.start(), match[1]) for match in HEADING.finditer(_without_fences(body))]
    parts = [_part(title, body[start:end]) for (start, title), (end, _) in pairwise([*marks, (len(body), "")])]
    return [part for part in parts if part.blocks] or [_part(request["title"], body)]


def _said(call: dict[str, Any]) -> str:
    """Return what a person said who sent the work back."""
    told = [each["summary"].strip() for each in call["feedback"] if each["reason_code"] == "SENT_BACK"]
    return str(told[-1]) if told else ""


def _without_fences(body: str) -> str:
    """Blank out fenced blocks, so that the demo agent takes no heading inside one for a step; offsets stay."""
    return FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), body)


def _part(title: str, text: str) -> DemoPart:
    blocks = []
    for kind, rest, content in FENCE.findall(text):
        attempt = ATTEMPT.search(rest)
        path = rest[: attempt.start()].strip() if attempt else rest.strip()
        blocks.append(DemoBlock(kind, path, int(attempt[1]) if attempt else None, content))
    return DemoPart(title, text, tuple(blocks))


def plan(call: dict[str, Any]) -> dict[str, Any]:
    """Make one step of every part."""
    parts = parts_of(call)
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
    """Do what a step's blocks say, or resolve the conflicts it was given."""
    part = _part_of_step(call)
    is_told = any(told["reason_code"] == "MERGE_CONFLICT" for told in call["feedback"])
    if part is None or (is_told and _has_conflicts(call["step"])):
        _resolve(call["step"])
        return {"status": "done", "summary": call["step"]["title"]}
    answers = {given["question"]: given["answer"] for given in call["answers"]}
    asked = next((block.text.strip() for block in part.blocks if block.kind == "ask"), None)
    question, *choices = asked.split("\n- ") if asked else [None]
    if question and question not in answers:
        say(f"asks: {question}")
        return {"status": "needs_input", "question": question, "choices": choices}
    answer = answers[question] if question else next(reversed(answers.values()), "")
    blocks = [block for block in part.blocks if block.kind in ("write", "append", "replace", "delete")]
    for block in blocks:
        if block.attempt in (None, call["attempt"]):
            _apply(block, answer)
    if not part.blocks:
        _apply(DemoBlock("append", "DEMO.md", None, f"- {call['request']['id']}: {part.title}\n"), "")
    time.sleep(float(os.environ.get("AIFLOW_DEMO_SECONDS", "0")))
    return {"status": "done", "summary": part.title}


def _part_of_step(call: dict[str, Any]) -> DemoPart | None:
    """Return what the text says about a step; nothing for one that aiflow added, as for a merge."""
    parts, request, step = parts_of(call), call["request"], call["step"]
    titles = [" ".join(each["title"].split()) for each in call["planning"]["steps"]]
    first = " ".join(parts[0].title.split())
    if first not in titles and request["title"] in titles:  # there was no planner
        parts, first = [_part(request["title"], parts[0].text if _said(call) else request["body"])], request["title"]
    begin = titles.index(first) if first in titles else 0
    number = [each["id"] for each in call["planning"]["steps"]].index(step["id"]) - begin
    is_merge = first not in titles and step["title"].startswith("Merge ")
    return parts[number] if 0 <= number < len(parts) and not is_merge else None


def _apply(block: DemoBlock, answer: str) -> None:
    """Write, extend, change or delete one file below the worktree."""
    path = _inside(block.path)
    literal = json.dumps(answer, ensure_ascii=False)
    text = ANSWER.sub(lambda match: literal if match[1] else answer, block.text)
    say(f"{block.kind} {path}")
    if block.kind == "delete":
        if os.path.lexists(path):
            os.unlink(path)
        return
    if block.kind == "replace":
        _replace(path, text)
        return
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "a" if block.kind == "append" else "w", encoding="utf-8") as file:
        file.write(text)


def _inside(name: str) -> str:
    if os.path.isabs(name) or ".." in name.split("/"):
        raise SystemExit(f"{name} is outside the worktree")
    return os.path.normpath(name)


def _replace(path: str, text: str) -> None:
    """Put new lines in the place of old ones, once; where that is done already nothing changes."""
    before = _read(path)
    line_end = "\r\n" if "\r\n" in before else "\n"
    old, *rest = ARROW.split(text.replace("\n", line_end), maxsplit=1)
    if not old or not rest:
        raise SystemExit(f"replace {path}: old lines, a line `=>`, new lines")
    new = rest[0]
    if _has(before, new) and (_has(new, old) or not _has(before, old)):
        return
    if not _has(before, old):
        raise SystemExit(f"{path} has no such lines: {old.strip()[:200]}")
    _write(path, re.sub(f"^{re.escape(old)}", lambda _: new, before, count=1, flags=re.MULTILINE))


def _has(text: str, lines: str) -> bool:
    """Return whether a text contains whole lines."""
    return bool(lines) and bool(re.search(f"^{re.escape(lines)}", text, re.MULTILINE))


def _has_conflicts(step: dict[str, Any]) -> bool:
    return any(re.search(CONFLICT, _read(path)) for path in _targets(step))


def _resolve(step: dict[str, Any]) -> None:
    """Keep the lines of both sides where a step's files have conflict markers."""
    for path in _targets(step):
        before = _read(path)
        after = re.sub(CONFLICT, r"\g<ours>\g<theirs>", before)
        if after != before:
            say(f"resolve {path}")
            _write(path, after)


def _targets(step: dict[str, Any]) -> list[str]:
    return [path for path in map(_inside, step["targets"]["paths"]) if os.path.isfile(path)]


def _read(path: str) -> str:
    """Read a text as it is, its line ends too."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "surrogateescape")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise SystemExit(f"there is no file {path}") from error


def _write(path: str, text: str) -> None:
    with open(path, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))


def review(call: dict[str, Any]) -> dict[str, Any]:
    """Pass everything but what a text says to reject."""
    part = _part_of_step(call)
    blocks = [block for block in part.blocks if block.kind == "reject"] if part else []
    findings = [block.text.strip() for block in blocks if block.attempt in (None, call["attempt"])]
    say(f"{len(findings)} finding(s)")
    answer = {"verdict": "fail" if findings else "pass", "findings": findings}
    asked = call["review"]["criteria"]
    criteria = [{"number": each["number"], "met": True, "note": ""} for each in asked]
    return {**answer, "criteria": criteria} if criteria else answer


if __name__ == "__main__":
    sys.exit(main())
