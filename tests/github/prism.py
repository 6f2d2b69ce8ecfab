"""Prism as a proxy before the hub: every call and every answer is held against GitHub's own description of its API.

The description is cut to what aiflow calls (Prism would take ten times as long to start), and mended where Prism cannot
compile it: it would check nothing there, without a word. `test_teeth.py` proves that it bites.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from waiting import wait_until

NODE_MODULES = Path(__file__).parents[2] / ".venv/github/node_modules"
DESCRIPTION = NODE_MODULES / "@octokit/openapi/generated/api.github.com.json"
PROGRAM = NODE_MODULES / "@stoplight/prism-cli/dist/index.js"

_REPO = "/repos/{owner}/{repo}"
_ISSUE, _COMMENT = _REPO + "/issues/{issue_number}", _REPO + "/issues/comments/{comment_id}"
USED: dict[str, tuple[str, ...]] = {
    _REPO: ("get",),
    _REPO + "/issues": ("get",),
    _ISSUE: ("get", "patch"),
    _ISSUE + "/comments": ("get", "post"),
    _ISSUE + "/events": ("get",),
    _ISSUE + "/labels": ("post",),
    _ISSUE + "/labels/{name}": ("delete",),
    _ISSUE + "/dependencies/blocked_by": ("get",),
    _COMMENT: ("patch", "delete"),
    _COMMENT + "/reactions": ("post",),
    _REPO + "/labels": ("get", "post"),
    _REPO + "/collaborators/{username}/permission": ("get",),
    _REPO + "/hooks": ("get",),
    _REPO + "/hooks/{hook_id}/deliveries": ("get",),
    _REPO + "/pulls": ("get", "post"),
    _REPO + "/pulls/{pull_number}": ("patch",),
    _REPO + "/installation": ("get",),
    "/app": ("get",),
    "/app/installations/{installation_id}/access_tokens": ("post",),
    "/rate_limit": ("get",),
    "/user": ("get",),
    "/users/{username}": ("get",),
}


def cut_description(folder: Path) -> Path:
    """Write what aiflow uses of the description, and return where it is."""
    assert DESCRIPTION.exists(), "make .venv/.github installs it"
    whole = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
    paths = {path: {name: whole["paths"][path][name] for name in methods} for path, methods in USED.items()}
    cut: dict[str, Any] = {"openapi": whole["openapi"], "info": whole["info"], "paths": paths, "components": {}}
    waiting, known = [paths], set[str]()
    while waiting:
        for kind, name in re.findall(r'"\$ref": "#/components/([^/"]+)/([^"]+)"', json.dumps(waiting.pop())):
            if (place := f"{kind}/{name}") not in known:
                known.add(place)
                cut["components"].setdefault(kind, {})[name] = whole["components"][kind][name]
                waiting.append(whole["components"][kind][name])
    target = folder / "github.json"
    target.write_text(json.dumps(mended(cut)), encoding="utf-8")
    return target


def mended(part: Any) -> Any:
    """Say "or null" in a way that Prism can compile: `nullable` without a `type` is none."""
    if isinstance(part, list):
        return [mended(each) for each in part]
    if not isinstance(part, dict):
        return part
    made = {name: mended(each) for name, each in part.items() if name not in ("example", "examples")}
    if made.get("nullable") is True and "type" not in made:
        del made["nullable"]
        kinds = [name for name in ("anyOf", "oneOf", "allOf") if name in made]
        if kinds:
            rest = {name: made.pop(name) for name in kinds}
            made["anyOf"] = [rest, {"type": "string", "nullable": True, "maxLength": 0}]
    return made


@contextlib.contextmanager
def prism(description: Path, upstream: str, folder: Path) -> Iterator[str]:
    """Run Prism before a server for as long as the block lasts."""
    log = folder / "prism.log"
    argv = ["node", str(PROGRAM), "proxy", "-h", "127.0.0.1", "-p", "0", "--errors", str(description), upstream]
    with log.open("w") as said, subprocess.Popen(argv, stdout=said, stderr=subprocess.STDOUT) as process:
        try:
            wait_until(lambda: _address(log, process))
            yield _address(log, process)
        finally:
            process.terminate()
            process.wait()


def _address(log: Path, process: subprocess.Popen[bytes]) -> str:
    text = log.read_text(encoding="utf-8", errors="replace")
    assert process.poll() is None, text
    found = re.search(r"Prism is listening on (http://127\.0\.0\.1:\d+)", re.sub(r"\x1b\[[0-9;]*m", "", text))
    return found[1] if found else ""
