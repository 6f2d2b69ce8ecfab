"""An emulator of GitHub that nobody here wrote (npm `emulate`): it agrees with our hub only where both are right."""

from __future__ import annotations

import contextlib
import json
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from github.prism import NODE_MODULES
from waiting import wait_until

REPO, OWNER, OWNER_TOKEN, RUNNER, RUNNER_TOKEN = "octo/demo", "octo", "token_of_octo", "runner", "token_of_runner"
SEED = {
    "tokens": {
        OWNER_TOKEN: {"login": OWNER, "scopes": ["repo", "user", "admin:repo_hook"]},
        RUNNER_TOKEN: {"login": RUNNER, "scopes": ["repo", "user"]},
    },
    "github": {
        "users": [{"login": OWNER, "name": "Octo"}, {"login": RUNNER, "name": "Runner"}],
        "repos": [{"owner": OWNER, "name": "demo", "auto_init": True}],
    },
}
PROGRAM = """
import { createEmulator } from %s
const github = await createEmulator({ service: 'github', port: 0, seed: %s })
console.log('at ' + github.url)
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
"""


def node() -> str:
    """Find a Node.js of at least 24: the machine's own, or the one that comes with the tests."""
    own = shutil.which("node")
    if own and int(subprocess.check_output([own, "-p", "process.versions.node.split('.')[0]"], text=True)) >= 24:
        return own
    kind = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return str(NODE_MODULES / f"node-{platform.system().lower()}-{kind}/bin/node")


@contextlib.contextmanager
def emulator(folder: Path) -> Iterator[str]:
    """Run the emulator for as long as the block lasts."""
    log, module = folder / "emulate.log", (NODE_MODULES / "emulate/dist/api.js").as_uri()
    program = PROGRAM % (json.dumps(module), json.dumps(SEED))
    argv = [node(), "--input-type=module", "-e", program]
    with (
        log.open("w") as said,
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT, cwd=folder) as process,
    ):
        try:
            wait_until(lambda: _address(log, process))
            yield _address(log, process)
        finally:
            process.terminate()
            process.wait()


def _address(log: Path, process: subprocess.Popen[bytes]) -> str:
    text = log.read_text(encoding="utf-8", errors="replace")
    assert process.poll() is None, text
    found = re.search(r"^at (http://\S+)$", text, re.MULTILINE)
    return found[1].replace("localhost", "127.0.0.1") if found else ""
