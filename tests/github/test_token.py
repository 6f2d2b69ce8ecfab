"""The token and its like are out of an agent's reach (ISS-11): with a real agent program that looks everywhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.secrets import Masker
from aiflow.adapters.toml_settings import load_settings
from aiflow.errors import SettingsError
from e2e.bench import Bench
from e2e.scripted_agents import plan_of
from github.answering import GitHub
from github.hub import Hub
from github.scene import PEOPLE, RUNNER
from github.server import served

# Neither looks like a token of GitHub's, nor is its variable's name that of a secret.
TOKEN, SECRET, KEY = "opaque-0a1b2c3d4e5f-for-the-hub", "hush-6f5e4d3c2b1a-for-the-hook", "key-112233-of-the-app"
LOOK = """
seen = [repr(dict(os.environ)), repr(sys.argv), os.popen("git config --list --show-origin").read()]
pid = os.getppid()
while pid > 1:
    for name in ("environ", "cmdline"):
        try:
            with open("/proc/%d/%s" % (pid, name), "rb") as file:
                seen.append("%s of %d: %s" % (name, pid, file.read().decode(errors="replace")))
        except OSError as error:
            seen.append("%s of %d: %s" % (name, pid, error))
    with open("/proc/%d/stat" % pid) as file:
        pid = int(file.read().rpartition(")")[2].split()[1])
for top in (os.getcwd(), ROOT / "runs", ROOT / ".aiflow", ROOT / ".git"):
    for place, _, names in os.walk(os.fspath(top)):
        for name in names:
            try:
                with open(os.path.join(place, name), "rb") as file:
                    seen.append("%s/%s: %s" % (place, name, file.read().decode(errors="replace")))
            except OSError:
                pass
with open(folder + "/seen", "a") as file:
    file.write("\\n".join(seen) + "\\n")
print("\\n".join(seen)[:2000])
"""


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Bench:
    return Bench(repository, tmp_path)


@pytest.fixture
def hub() -> Iterator[tuple[Hub, str]]:
    made = Hub()
    api = GitHub(made)
    for login, permission in PEOPLE.items():
        made.person(login, permission)
    made.person(RUNNER, "write")
    made.tokens = {TOKEN: RUNNER}
    with served(api) as url:
        api.link_url = url
        yield made, url


@pytest.mark.contract
@pytest.mark.spec("ISS-11", "AGT-4", "SEC")
def test_an_agent_that_looks_everywhere_finds_no_secret_of_githubs(bench: Bench, hub: tuple[Hub, str]) -> None:
    github, url = hub
    bench.aiflow.environ |= {"HUB_NAME": TOKEN, "HOOK_NAME": SECRET}
    (bench.state.parent / "app.pem").write_text(KEY)
    names = 'token_env = "HUB_NAME"\nwebhook_secret_env = "HOOK_NAME"'
    bench.configure(f'[github]\nrepo = "{github.repo}"\napi_url = "{url}"\n{names}\n')
    bench.commit()
    bench.agent.does("planner", f"{LOOK}\nanswer({json.dumps(plan_of('S01'))!r})")
    bench.agent.does("implementer", f"{LOOK}\nwrite('S01.txt', 'hello'); done()")
    number = github.open_issue("Say hello", "Please.", by="maya")
    github.label(number, "agent:queued", "maya")
    assert bench.aiflow.json("issues", "sync")["changed"] == [f"GH-{number}"]
    # A process of its own: what the kernel shows of its environment is what it was started with.
    process = bench.start("run", f"GH-{number}", "--json", argv=[sys.executable, "-m", "aiflow", "run", f"GH-{number}"])
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    seen = (bench.agent.folder / "seen").read_text(errors="replace")
    assert "aiflow" in seen
    assert "environ of" in seen
    told = json.dumps([row.body for row in github.rows[number].comments])
    kept = "".join(path.read_text(errors="replace") for path in bench.root.rglob("*") if path.is_file())
    places = {"seen": seen, "printed": out + err, "told": told, "kept": kept}
    for secret in (TOKEN, SECRET, KEY):
        assert [name for name, text in places.items() if secret in text] == []


@pytest.mark.spec("ISS-11")
@pytest.mark.parametrize("key", ["agent.env", "tests.env"])
@pytest.mark.parametrize("variable", ["GITHUB_TOKEN", "GITHUB_WEBHOOK_SECRET"])
def test_settings_that_would_hand_the_token_on_are_refused_with_the_key(
    tmp_path: Path, key: str, variable: str
) -> None:
    flags = (f"{key}=HOME {variable}",)
    assert variable in load_settings(tmp_path, {}, flags).texts(key)  # without a repository it is not aiflow's
    with pytest.raises(SettingsError) as refused:
        load_settings(tmp_path, {}, (*flags, "github.repo=octo/demo"))
    problems: Any = refused.value.context["problems"]
    problem = problems[0]
    assert (problem["key"], problem["kind"], problem["value"]) == (key, "not_for_agents", variable)
    other = ("github.repo=octo/demo", "github.token_env=BOT", "github.webhook_secret_env=HOOK", *flags)
    assert variable in load_settings(tmp_path, {}, other).texts(key)


@pytest.mark.spec("ISS-11")
def test_the_apps_key_is_copied_into_no_worktree_and_a_named_token_is_masked(tmp_path: Path) -> None:
    app = ("github.repo=octo/demo", "github.app_id=1", "github.app_key_path=./secret/app.pem")
    with pytest.raises(SettingsError):
        load_settings(tmp_path, {}, (*app, "worktree.copy=.env secret/app.pem"))
    assert load_settings(tmp_path, {}, (*app, "worktree.copy=.env")).texts("worktree.copy") == (".env",)
    assert Masker({"HUB_NAME": TOKEN}, ("HUB_NAME",)).mask_text(f"it is {TOKEN}") == "it is ***"
