"""The guide "Drive it from a script" (API-3, SEC): its commands work as they stand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from server_yard import served

GUIDE = Path(__file__).parents[3] / "docs/guides/from-a-script.md"


@pytest.mark.spec("API-3", "SEC")
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_what_the_guide_says_can_be_typed(repository: Path, tmp_path: Path) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    streams = [block for block in blocks if "curl -sS -N" in block]
    calls = "\n".join(block for block in blocks if block not in streams)
    assert (len(blocks), len(streams)) == (5, 2)
    with served(repository) as up:
        (repository / "requests/RQ-1.md").write_text("status: draft\n\n# One\n")
        up.server.sign_in.access.token()  # made by `aiflow up` before it says that it is ready
        token = up.server.sign_in.access.token_file
        calls = calls.replace("http://127.0.0.1:4310", up.origin).replace("~/.local/share/aiflow/api-token", token)
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
        done = subprocess.run(["bash", "-c", calls], capture_output=True, text=True, env=environ, check=True)
        heard = [_until_auto(f"{calls}\nexec {block}", environ) for block in streams]
    assert '"waiting"' in done.stdout
    assert '"requests":[' in done.stdout
    assert '"reason_code":"NOT_READY"' in done.stdout  # of a draft no run is started
    assert ["event: hello" in each for each in heard] == [True, True]
    assert ["event: gap" in each for each in heard] == [False, True]


def _until_auto(script: str, environ: dict[str, str]) -> str:
    """Read a stream, which has no end, up to the last thing that it begins with."""
    heard = ""
    with subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            heard += line
            if line == "event: auto\n":
                break
        process.kill()
    return heard
