"""Making a project ready (CLI `init`), with everything in memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.domain.agents.programs import AgentChoice, AgentProgram
from aiflow.domain.request import RequestId
from aiflow.errors import BadInputError
from aiflow.messages import Texts
from aiflow.messages.commands import command_line
from aiflow.settings import SettingValue, Source, settle
from aiflow.usecases.project.init import Initialised, Site, commit_of, init_project

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class MemoryRepository:
    """Files in memory, to look at and to make more of."""

    def __init__(
        self, *tracked: str, branch: str = "main", programs: tuple[str, ...] = ("npm", "go", "python3")
    ) -> None:
        self.tracked_files = tracked
        self.made: dict[str, str] = {}
        self.checked_out = branch
        self.programs = programs

    def create(self, path: str, text: str) -> bool:
        is_new = path not in self.made
        self.made.setdefault(path, text)
        return is_new

    def branch(self) -> str:
        return self.checked_out

    def names(self, folder: str) -> frozenset[str]:
        start = f"{folder}/" if folder else ""
        every = (*self.tracked_files, *self.made)
        return frozenset(path.removeprefix(start).split("/")[0] for path in every if path.startswith(start))

    def files(self, folder: str) -> frozenset[str]:
        start = f"{folder}/" if folder else ""
        return frozenset(path.removeprefix(start) for path in self.tracked_files if path.startswith(start))

    def tracked(self, folder: str) -> tuple[str, ...]:
        return tuple(path for path in self.tracked_files if path.startswith(f"{folder}/"))

    def read(self, path: str) -> str:
        return '{"scripts": {"test": "x"}}' if path.endswith("package.json") else ""

    def has_program(self, name: str) -> bool:
        return name in self.programs


class NoPrograms:
    """A machine without agents."""

    def survey(self) -> tuple[AgentProgram, ...]:
        return ()

    def find(self, choice: AgentChoice) -> AgentProgram:
        raise AssertionError(choice)

    def ask(self, programs: object) -> tuple[AgentProgram, ...]:
        raise AssertionError(programs)


def init(
    repository: MemoryRepository,
    start: str = "",
    language: str = "en",
    given: Mapping[str, SettingValue] | None = None,
    journal: MemoryJournal | None = None,
) -> Initialised:
    flags = given or {}
    site = Site(repository, repository, NoPrograms(), settle({Source.FLAG: flags}), start)
    return init_project(site, None, Texts(language), (journal or MemoryJournal(), lambda: NOW))


@pytest.mark.spec("CFG")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_init_makes_what_is_missing_and_nothing_twice(language: str) -> None:
    repository, journal = MemoryRepository(".gitignore"), MemoryJournal()
    first = init(repository, "", language, journal=journal)
    assert first.made == ("aiflow.toml", "requests/EXAMPLE-1.md", "requests/EXAMPLE-2.md")
    again = init(repository, "", language, journal=journal)
    assert (again.made, again.kept) == ((), ("aiflow.toml", "requests/"))
    assert [entry.kind for entry in journal.entries] == ["project_initialised"]
    texts = {RequestId(path[9:-3]): text for path, text in repository.made.items() if path.startswith("requests/")}
    valid, broken = MemoryRequests(texts).load()
    assert broken == []
    assert {(r.id, r.status, r.depends_on) for r in valid} == {
        ("EXAMPLE-1", "draft", ()),
        ("EXAMPLE-2", "draft", ("EXAMPLE-1",)),
    }


@pytest.mark.spec("CFG")
def test_the_settings_are_short_and_say_what_the_repository_shows() -> None:
    repository = MemoryRepository("package.json", "package-lock.json", "go.mod", branch="master")
    done = init(repository)
    assert done.choices.values == {"base_branch": "master", "tests.unit": "npm test", "worktree.setup": "npm ci"}
    assert done.choices.by == {"tests.unit": "package.json", "worktree.setup": "package.json"}
    assert [each.unit for each in done.choices.others] == ["go test ./..."]
    text = repository.made["aiflow.toml"]
    assert [line for line in text.splitlines() if line and not line.startswith("#")] == [
        'base_branch = "master"',
        "[tests]",
        'unit = "npm test"',
        "[worktree]",
        'setup = "npm ci"',
    ]
    assert "`aiflow settings` lists every setting" in text
    assert len(text.splitlines()) < 20


@pytest.mark.spec("CFG")
def test_what_a_person_gives_is_written_instead() -> None:
    repository = MemoryRepository("package.json", "package-lock.json")
    given: dict[str, SettingValue] = {
        "base_branch": "dev",
        "tests.unit": "",
        "requests_dir": "backlog",
        "accept": "auto",
    }
    done = init(repository, given=given)
    assert done.choices.values == {
        "base_branch": "dev",
        "tests.unit": "",
        "worktree.setup": "npm ci",
        "requests_dir": "backlog",
        "accept": "auto",
    }
    assert "tests.unit" not in done.choices.by
    assert done.made[1:] == ("backlog/EXAMPLE-1.md", "backlog/EXAMPLE-2.md")


@pytest.mark.spec("CFG")
def test_a_missing_program_and_a_detached_head_are_known() -> None:
    done = init(MemoryRepository("package.json", "pnpm-lock.yaml", branch=""))
    assert (done.choices.values["base_branch"], done.choices.missing) == ("", ("pnpm",))


@pytest.mark.spec("CFG")
def test_in_a_monorepo_the_folder_counts_where_the_root_has_no_tests() -> None:
    done = init(MemoryRepository("README.md", "my api/package.json", "my api/package-lock.json"), "my api")
    assert done.choices.values["tests.unit"] == "cd 'my api' && npm test"
    assert done.choices.values["worktree.setup"] == "cd 'my api' && npm ci"
    assert done.choices.by["tests.unit"] == "my api/package.json"
    done = init(MemoryRepository("go.mod", "my api/package.json"), "my api")
    assert done.choices.values["tests.unit"] == "go test ./..."


@pytest.mark.spec("CFG")
def test_what_was_made_is_committed_and_nothing_else() -> None:
    repository = MemoryRepository()
    action = commit_of(init(repository, "a/b"), "a/b")
    assert action is not None
    paths = "../../aiflow.toml ../../requests"
    assert command_line(action) == f'git add {paths} && git commit -m "Set up aiflow" -- {paths}'
    assert commit_of(init(repository)) is None


@pytest.mark.spec("REQ-2")
@pytest.mark.parametrize("stranger", ["requests/__init__.py", "requests/docs/a.md", "requests/.github/x"])
def test_a_folder_with_tracked_files_that_are_no_requests_is_refused(stranger: str) -> None:
    repository = MemoryRepository("requests/NOTES.md", stranger)
    with pytest.raises(BadInputError) as caught:
        init(repository)
    assert (caught.value.reason_code, caught.value.context["detail"]) == ("REQUESTS_DIR_IN_USE", stranger)
    assert repository.made == {}
    assert "aiflow.toml" in init(repository, given={"requests_dir": "backlog"}).made


@pytest.mark.spec("REQ-2")
@pytest.mark.parametrize("own", ["requests/RQ-1.md", "requests/README.md", "requests/.gitkeep", "requests/readme.txt"])
def test_requests_and_what_may_stand_beside_them_are_not_refused(own: str) -> None:
    assert "aiflow.toml" in init(MemoryRepository(own, "requestsx/a.py")).made


@pytest.mark.spec("REQ-2")
def test_a_project_that_has_requests_already_keeps_its_folder() -> None:
    assert init(MemoryRepository("aiflow.toml", "requests/RQ-1.md", "requests/shot.png")).kept[-1] == "requests/"


@pytest.mark.spec("CFG", "GIT-4")
def test_submodules_are_filled_before_anything_else_is_set_up() -> None:
    fill = "git submodule update --init --recursive"
    alone = init(MemoryRepository(".gitmodules", programs=("git",))).choices
    assert (alone.values["worktree.setup"], alone.by) == (fill, {"worktree.setup": ".gitmodules"})
    both = init(MemoryRepository(".gitmodules", "web/package.json", "web/package-lock.json"), "web").choices
    assert both.values["worktree.setup"] == f"{fill} && cd web && npm ci"
    assert both.by == {"tests.unit": "web/package.json", "worktree.setup": ".gitmodules, web/package.json"}
    assert init(MemoryRepository(".gitmodules"), given={"worktree.setup": "x"}).choices.values["worktree.setup"] == "x"
