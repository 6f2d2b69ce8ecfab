"""The documentation is true: pages match the code, links lead somewhere, examples run and print what they show."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import forked
import tutorial_model
from aiflow.adapters.dynamo.queue import DynamoStore
from aiflow.adapters.markdown_requests.scan import read_request
from aiflow.cli.main import COMMANDS, LATER_COMMANDS
from aiflow.domain.request import Priority, Request, RequestStatus
from aiflow.messages import Texts
from aiflow.settings import TABLE
from doc_examples import Example, Reader, SavedFile, actions, fenced, without_code
from dynamo import Dynamo
from e2e.model_server import ModelServer
from e2e.real_agents import RealHome

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PROGRAM = Path(sys.executable).parent / "aiflow"
READMES = {"en": "README.md", "ja": "README.ja.md"}
# Pages whose `console` blocks are run, one after the other, in a repository of their own.
RUN_PAGES = (
    "README.md",
    "README.ja.md",
    "docs/quickstart.md",
    "docs/install.md",
    "docs/tutorial.md",
    "docs/concepts/selection.md",
    "docs/concepts/requests.md",
    "docs/concepts/runs.md",
    "docs/concepts/acceptance.md",
    "docs/concepts/locks.md",
    "docs/concepts/auto-run.md",
    "docs/concepts/queue.md",
    "docs/concepts/untrusted-text.md",
    "docs/guides/agents.md",
    "docs/guides/answer-a-question.md",
    "docs/guides/after-a-crash.md",
    "docs/guides/clean-up.md",
    "docs/guides/local-store.md",
    "docs/guides/notifications.md",
    "docs/guides/overnight.md",
    "docs/guides/stable-and-dev.md",
    "docs/guides/use-your-own-agent.md",
    "docs/ja/quickstart.md",
    "docs/ja/tutorial.md",
    "docs/ja/concepts/requests.md",
    "docs/ja/concepts/runs.md",
    "docs/ja/guides/agents.md",
    "docs/ja/guides/answer-a-question.md",
)
# Those with whole nights and crashes in them, which take their time.
LONG_PAGES = (
    "docs/quickstart.md",
    "docs/tutorial.md",
    "docs/ja/quickstart.md",
    "docs/ja/tutorial.md",
    "docs/concepts/acceptance.md",
    "docs/guides/after-a-crash.md",
    "docs/guides/clean-up.md",
)
# Those that begin with `aiflow init`, in a repository that has tests.
INIT_PAGES = ("README.md", "README.ja.md", "docs/quickstart.md", "docs/ja/quickstart.md")
SHOP_TEST = (
    "import unittest\n\n\nclass ShopTest(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue(True)\n"
)
# Those on which the real claude works, and what its model answers.
AGENT_PAGES = dict.fromkeys(("docs/tutorial.md", "docs/ja/tutorial.md"), tutorial_model.answer)
# Those that need a queue store get a real one of their own.
QUEUE_PAGES = ("docs/concepts/queue.md", "docs/guides/stable-and-dev.md")
AUTHOR = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Mika"), ("EMAIL", "mika@example.com"))
}
ALL_PAGES = sorted(str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md")))
MOVE = re.compile(r"cd (\S+)")
# Where the program itself is typed; elsewhere it starts at once (tests/forked.py).
TYPED_IN_FULL = ("README.md",)
# What is said of a machine that is slow is on no page.
WAITING = tuple(f"{Texts(language)('store.progress.wait')}\n" for language in READMES)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def clean_environ(**more: str) -> dict[str, str]:
    """Return an environment without anybody's own language, aiflow or git settings, and with the program in PATH."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIFLOW", "LC_", "LANG", "GIT_"))}
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "LANG": "C.UTF-8", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_PAGER": "cat", **more}


# --- generated pages -------------------------------------------------------------------------------------------------


@pytest.mark.spec("ERR-1")
def test_generated_pages_say_what_the_code_says_whoever_generates_them() -> None:
    foreign = {
        "LC_ALL": "ja_JP.UTF-8",
        "AIFLOW_LANG": "ja",
        "AIFLOW_ACCEPT": "auto",
        "COLUMNS": "30",
        "TZ": "Asia/Tokyo",
    }
    command = [sys.executable, str(DOCS / "generate.py"), "--check"]
    done = subprocess.run(command, env=clean_environ(**foreign), capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- links and names -------------------------------------------------------------------------------------------------

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = HEADING.findall(without_code(text))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ALL_PAGES)
def test_every_link_leads_somewhere(name: str) -> None:
    for link in LINK.findall(without_code(read(name))):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.resolve().is_relative_to(ROOT), f"{link} leads out of the repository"
        assert target.exists(), f"{link} does not exist"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{link}: no such heading"


JAPANESE_PAGES = [name for name in ALL_PAGES if name == "README.ja.md" or name.startswith("docs/ja/")]


@pytest.mark.parametrize("name", JAPANESE_PAGES)
def test_no_japanese_page_leads_to_an_english_one_that_exists_in_japanese(name: str) -> None:
    ours = {page.replace("docs/ja/", "docs/"): page for page in JAPANESE_PAGES} | {"README.md": "README.ja.md"}
    for title, link in re.findall(r"\[([^\]]*)\]\(([^)\s#]+)", without_code(read(name))):
        found = os.path.normpath(os.path.join(os.path.dirname(name), link))
        assert found not in ours or "English" in title or "英語" in title, f"{link}: there is {ours[found]}"


def snippets(text: str) -> Iterator[str]:
    """Yield everything on a page that a reader may type: prompts, scripts, arrows, code in sentences."""
    for block in fenced(text, "console"):
        for line in block.splitlines():
            if line.startswith("$ "):
                yield line
            yield from re.findall(r"→ (aiflow .*)", line)
    for block in fenced(text, "sh"):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", without_code(text))


@pytest.mark.parametrize("name", RUN_PAGES)
def test_every_command_named_exists(name: str) -> None:
    named = re.compile(r"\baiflow(?: +-[-\w]+[ =]\S+)* +([a-z][a-z-]*)")
    text = read(name)
    found = {command for snippet in snippets(text) for command in named.findall(snippet)}
    typed = {command for action in actions(text) if isinstance(action, Example) for command in named.findall(action[0])}
    assert typed
    assert typed <= set(COMMANDS)
    assert found <= set(COMMANDS) | LATER_COMMANDS


@pytest.mark.parametrize("name", READMES.values())
def test_the_readme_test_command_is_what_ci_runs(name: str) -> None:
    first_screen = "\n".join(itertools.islice(fenced(read(name), "console"), 2))
    commands = re.findall(r"^\$ (make .+)$", first_screen, re.MULTILINE)
    assert commands == ["make demo", "make test"]
    assert commands[-1] in read(".ci/run").splitlines()


def test_both_readmes_name_the_same_options() -> None:
    named = [set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", read(name))) for name in READMES.values()]
    assert named[0] == named[1] != set()


@pytest.mark.parametrize("name", ALL_PAGES)
def test_no_page_names_a_place_on_somebodys_machine(name: str) -> None:
    assert not re.search(r"/(?:home|root|tmp|work|Users)/", read(name))


SETTING = re.compile(rf"`((?:{'|'.join({row.name.partition('.')[0] for row in TABLE if '.' in row.name})})\.[a-z_.]+)`")


@pytest.mark.parametrize("name", [name for name in ALL_PAGES if name != "CHANGELOG.md"])
def test_every_setting_that_a_page_names_exists(name: str) -> None:
    names = {row.name for row in TABLE} | {"agent.roles"}
    found = {setting.removesuffix(".json") for setting in SETTING.findall(without_code(read(name)))}
    assert {setting for setting in found if not setting.startswith("queue.lock")} <= names


# --- examples --------------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(repository: Path) -> Path:
    """Make a repository as a reader may have one: with a commit and a tracked `.gitignore`."""
    (repository / ".gitignore").write_text("__pycache__/\n")
    commit_all(repository)
    return repository


def commit_all(repository: Path) -> None:
    for command in (["add", "--all"], ["commit", "-q", "-m", "First commit"]):
        subprocess.run(["git", *command], cwd=repository, env=clean_environ(**AUTHOR), check=True)


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Iterator[ModelServer]:
    """Give the model that real agents of a page ask; there is one of its own for each of `AGENT_PAGES`."""
    with ModelServer(AGENT_PAGES.get(request.getfixturevalue("name"))) as server:
        yield server


@pytest.mark.spec("SEL-3", "SEL-5", "SEL-6", "REQ-3", "REQ-5", "RUN-6", "RUN-10", "RUN-11", "LCK-4", "LCK-7", "AGT-2")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.contract) if name in LONG_PAGES else name for name in RUN_PAGES]
)
def test_examples_print_what_the_page_shows(
    name: str, checkout: Path, tmp_path: Path, request: pytest.FixtureRequest, model: ModelServer
) -> None:
    language = "ja" if ".ja." in name or "/ja/" in name else "en"
    home = RealHome(tmp_path / "home", model.url, "claude", "codex")
    path = f"{PROGRAM.parent}:{home.environ['PATH']}"
    if name not in TYPED_IN_FULL:
        forked.write_program(tmp_path / "bin")
        path = f"{tmp_path}/bin:{path}"
    environ = {**clean_environ(AIFLOW_LANG=language, **AUTHOR), **home.environ, "PATH": path}
    if name in QUEUE_PAGES:
        dynamo: Dynamo = request.getfixturevalue("dynamo")
        DynamoStore(dynamo.connect()).prepare()  # a busy store takes long over its tables, which a person is told
        environ |= dynamo.environ
    if name in INIT_PAGES:
        save(checkout, SavedFile("tests/test_shop.py", SHOP_TEST))
        commit_all(checkout)
    reader = Reader()
    found = actions(read(name))
    assert found
    here = checkout
    for action in found:
        if isinstance(action, SavedFile):
            save(here, action)
            continue
        if moved := MOVE.fullmatch(action.command):
            here = (here / moved[1]).resolve(strict=True)
            continue
        done = type_in(here, environ, reader.typed(action.command))
        is_well = done.returncode == 0 or not (action.is_hidden or name in INIT_PAGES)
        is_shown = action.is_hidden or reader.sees(action.shown, done.stdout)
        assert is_well and is_shown, f"$ {action.command}\n{done.stdout}"
    if name in INIT_PAGES:
        check_untouched(checkout, environ)


def check_untouched(checkout: Path, environ: dict[str, str]) -> None:
    """Nothing of the reader's is changed but requests: `.gitignore` is tracked and as it was."""
    tracked, *changed = type_in(
        checkout, environ, "git ls-files .gitignore; git status --porcelain"
    ).stdout.splitlines()
    assert tracked == ".gitignore"
    assert [line for line in changed if "requests/" not in line and line != "?? try-it/"] == []


def commands_of(name: str) -> list[str]:
    """Everything that is typed on a page in a repository of the reader's own, what is not shown too."""
    typed = [action.command for action in actions(read(name)) if isinstance(action, Example)]
    return typed[typed.index("aiflow init") :]


@pytest.mark.parametrize("name", INIT_PAGES)
def test_the_first_five_minutes_are_typed_as_they_are_shown_from_init_to_accept(name: str) -> None:
    assert name in RUN_PAGES
    shown = "\n".join(fenced(read(name), "console"))
    assert [command for command in commands_of(name) if f"$ {command}\n" not in shown] == []
    wanted = ("aiflow init", "git add", "aiflow new", "aiflow -c agent.kind=demo run", "aiflow accept")
    assert [each for each in wanted if not any(command.startswith(each) for command in commands_of(name))] == []


def test_both_readmes_type_the_same_commands() -> None:
    assert len(commands_of("README.md")) == len(commands_of("README.ja.md"))
    first_words = [
        [command.split(" -b ")[0].split('"')[0] for command in commands_of(name)] for name in READMES.values()
    ]
    assert first_words[0] == first_words[1]


def test_the_readme_shows_the_demo_as_the_quickstart_does() -> None:
    """The quickstart is run; tests/e2e/project/test_demo.py looks at the Japanese one."""
    first_screen = next(fenced(read("README.md"), "console")).splitlines()
    assert (first_screen[0], "…" in first_screen) == ("$ make demo", True)
    ours = next(each for each in actions(read("docs/quickstart.md")) if isinstance(each, Example))
    assert ours.command.startswith("aiflow demo")
    assert Reader().sees(first_screen[1:], "".join(f"{line}\n" for line in ours.shown))


def save(checkout: Path, file: SavedFile) -> None:
    path = checkout / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(file.text, encoding="utf-8")
    path.chmod(0o755 if file.is_program else 0o644)


def type_in(checkout: Path, environ: dict[str, str], command: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=checkout,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    for words in WAITING:
        done.stdout = done.stdout.replace(words, "")
    return done


def test_what_differs_from_call_to_call_is_compared_by_what_it_is() -> None:
    reader = Reader()
    shown = ["RUN-20261116-023029-6e5290  DONE  3 s ago", "02:30:29  commit b50c58b", "on 2026-11-16", "…"]
    real = "RUN-20991231-235959-abcdef  DONE  12 min ago\n23:59:59  commit 0123456\non 2099-12-31\n\nmore\n"
    assert reader.sees(shown, real)
    assert reader.typed("git show b50c58b RUN-20261116-023029-6e5290") == "git show 0123456 RUN-20991231-235959-abcdef"
    assert reader.sees(["RUN-20261116-023029-6e5290"], "RUN-20991231-235959-abcdef\n")
    assert not reader.sees(["RUN-20261116-023029-6e5290"], "RUN-20991231-235959-fedcba\n")
    assert not Reader().sees(shown, real.replace("DONE", "FAILED"))
    assert not Reader().sees(shown, real.replace("23:59:59", "never"))


@pytest.mark.spec("REQ-1", "REQ-2")
@pytest.mark.parametrize("name", ["docs/concepts/requests.md"])
def test_the_request_file_shown_is_a_valid_request(name: str) -> None:
    shown = list(fenced(read(name), "markdown"))
    assert shown
    for text in shown:
        request = read_request("RQ-1", "requests/RQ-1.md", text.encode())
        assert isinstance(request, Request), request
        assert (request.status, request.priority) == (RequestStatus.READY, Priority.P1)
        assert request.depends_on
        assert request.title != request.id


def test_every_file_that_the_architecture_page_names_exists() -> None:
    names = re.findall(r"`([a-z_/]+/[a-z_0-9./*]*\.(?:py|json))`", read("docs/architecture.md"))
    assert len(names) > 20
    roots = (ROOT, ROOT / "src/aiflow")
    assert [name for name in names if not any(list(root.glob(name)) for root in roots)] == []
