"""Use an installed aiflow as a new user does: with an empty home and git, away from its sources."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

PATIENCE_SECONDS = 120


def try_out(program: Path, folder: Path, version: str) -> str:
    """Work through the demo and serve its page; returns in a line what was seen."""
    home = folder / "home"
    home.mkdir()
    # No variable of ours but the PATH: what works only with a developer's settings does not work.
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8", "CI": "true"}
    told = _run([str(program), "--version"], home, environ)
    assert told == f"aiflow, version {version}\n", told
    demo = json.loads(_run([str(program), "demo", "--json", str(home / "demo")], home, environ))
    done = demo["auto"]["done"]
    assert done > 0, demo["auto"]
    return f"the demo finished {done} requests; {_serve(program, home / 'demo', environ)}"


def _serve(program: Path, project: Path, environ: dict[str, str]) -> str:
    """Start `up` in a project, look at the morning page and every file that it names, and stop it."""
    argv = [str(program), "up", "--json", "--no-open", "--port", "0"]
    up = subprocess.Popen(argv, cwd=project, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert up.stdout is not None
        ready = json.loads(up.stdout.readline())
        token = Path(ready["token_file"]).read_text().strip()
        page = _fetch(ready["url"] + "/", token)
        assets = sorted(set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page)))
        assert any("htmx" in each for each in assets), assets
        for each in assets:
            assert _fetch(ready["url"] + each, token), each
        assert json.loads(_fetch(ready["url"] + "/api/health", token))["instance_id"] == ready["instance_id"]
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_SECONDS) == 0, up.returncode
    finally:
        up.kill()
        up.wait()
    return f"`up` served the page with {len(assets)} files, and ended on SIGTERM"


def _fetch(url: str, token: str) -> str:
    try:
        asked = Request(url, headers={"Authorization": f"Bearer {token}"})
        with urlopen(asked, timeout=PATIENCE_SECONDS) as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        raise AssertionError(f"{url}: {error.code}") from error


def _run(argv: list[str], folder: Path, environ: dict[str, str]) -> str:
    done = subprocess.run(
        argv, cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{argv}: {done.returncode}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


if __name__ == "__main__":
    print(try_out(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
