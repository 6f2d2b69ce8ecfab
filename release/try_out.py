"""Use an installed aiflow as a new user does: with an empty home, Python and git, away from its sources."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from empty_root import Place

PATIENCE_SECONDS = 120
ENVIRONMENT_FAILURE = 3
MANUAL = "share/man/man1/aiflow.1"


def try_out(program: Path, place: Place, version: str) -> str:
    """Work through the demo, serve its page and miss Java; returns in a line what was seen."""
    home = Path(place.environ["HOME"])
    told = _run(program, place, home, "--version")
    assert told == f"aiflow, version {version}\n", told
    manual = program.resolve().parents[1] / MANUAL
    assert manual.is_file(), f"no manual at {manual}"
    for name, has in (("bash", "complete "), ("zsh", "#compdef"), ("fish", "complete "), ("man", manual.read_text())):
        assert has in _run(program, place, home, "completion", name), name
    demo = json.loads(_run(program, place, home, "demo", "--json", str(home / "demo")))
    done = demo["auto"]["done"]
    assert done > 0, demo["auto"]
    _miss_java(program, place, home / "demo")
    served = _serve(program, place, home / "demo")
    return f"{place.told}, the demo finished {done} requests, {served}, and the queue asked for Java"


def _miss_java(program: Path, place: Place, project: Path) -> None:
    """See that without Java the queue says so, and what helps, and that nothing else stops for it."""
    made = json.loads(_run(program, place, project, "new", "Say hello", "--ready", "--json"))
    for asked in (("queue", "store", "start"), ("queue", "add", made["request_id"])):
        answer = json.loads(_run(program, place, project, *asked, "--json", code=ENVIRONMENT_FAILURE))
        assert answer["error"]["reason_code"] == "STORE_NOT_INSTALLED", answer
        told = _run(program, place, project, *asked, code=ENVIRONMENT_FAILURE)
        assert "Java" in told, told


def _serve(program: Path, place: Place, project: Path) -> str:
    """Start `up` in a project, look at the morning page and every file that it names, and stop it."""
    argv = [*place.prefix, str(program), "up", "--json", "--no-open", "--port", "0"]
    up = subprocess.Popen(argv, cwd=project, env=place.environ, stdout=subprocess.PIPE, text=True)
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
    return f"`up` served the page with {len(assets)} files and ended on SIGTERM"


def _fetch(url: str, token: str) -> str:
    try:
        asked = Request(url, headers={"Authorization": f"Bearer {token}"})
        with urlopen(asked, timeout=PATIENCE_SECONDS) as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        raise AssertionError(f"{url}: {error.code}") from error


def _run(program: Path, place: Place, folder: Path, *arguments: str, code: int = 0) -> str:
    """Call the program; returns what it printed, where a failure is expected with its messages."""
    done = subprocess.run(
        [*place.prefix, str(program), *arguments],
        cwd=folder,
        env=place.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, f"aiflow {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr if code else done.stdout
