"""Where a run works: names, sizes, and the page that compares its branch (GIT-2)."""

from __future__ import annotations

import pytest

from aiflow.domain.runs.worktree import (
    Changes,
    FileChange,
    branch_name,
    compare_url,
    is_refused,
    refused_folders,
    refused_top,
    retry_ref,
    wip_ref,
)

BRANCH = "aiflow/RQ-1/RUN-1"
PAGE = f"https://github.com/owner/repo.js/compare/main...{BRANCH}"


@pytest.mark.spec("GIT-1", "RUN-6", "RUN-7")
def test_the_names_of_a_run_in_git() -> None:
    assert branch_name("RQ-1", "RUN-1") == BRANCH
    assert wip_ref("RUN-1", "S01") == "refs/aiflow/wip/RUN-1/S01"
    assert retry_ref("RUN-1", "S01", 2) == "refs/aiflow/retried/RUN-1/S01-2"


@pytest.mark.spec("RUN-3")
def test_the_size_of_a_change_is_its_lines_and_its_areas() -> None:
    changes = Changes((FileChange("src/a/b.py", 3, 1), FileChange("src/c.py", 1, 0), FileChange("README.md", 0, 2)))
    assert changes.lines == 7
    assert changes.areas == {"src", ""}
    assert (Changes().lines, Changes().areas) == (0, frozenset())


@pytest.mark.spec("REQ-8")
def test_what_no_run_may_change() -> None:
    folders = refused_folders("docs/asked")
    for path in ("docs/asked", "docs/asked/RQ-1.md", "docs/asked/sub/x", "runs/RQ-1/x", ".aiflow/locks/x"):
        assert is_refused(path, folders)
    for path in ("docs/asked.txt", "docs/x", "src/docs/asked/x.py", "Docs/asked/x", "src/runs/x", "requests/x"):
        assert not is_refused(path, folders)


@pytest.mark.spec("REQ-8")
def test_where_case_is_not_told_apart_another_spelling_is_the_same_folder() -> None:
    folders = refused_folders("docs/asked")
    for path, top in (
        (".AIFLOW/locks/x", ".AIFLOW"),
        (".Aiflow", ".Aiflow"),
        (".GIT/hooks/x", ".GIT"),
        (".git", ".git"),
    ):
        assert refused_top(path, folders) == top
        assert refused_top(path, ()) == top
    for path, top in (("Runs/RQ-1/x", "Runs"), ("DOCS/Asked/RQ-1.md", "DOCS/Asked")):
        assert not is_refused(path, folders)
        assert refused_top(path, folders, ignores_case=True) == top
    for path in (".aiflow2/x", ".github/x", ".gitignore", "src/.AIFLOW/x", "Runsx", "Docs/x"):
        assert not is_refused(path, folders, ignores_case=True)


@pytest.mark.spec("GIT-2")
@pytest.mark.parametrize(
    "origin",
    [
        "git@github.com:owner/repo.js.git",
        "git@github.com:owner/repo.js",
        "git@github.com:/owner/repo.js.git",
        "github.com:owner/repo.js.git",
        "org-123@GitHub.com:owner/repo.js.git",
        "ssh://git@github.com/owner/repo.js.git",
        "ssh://git@github.com:22/owner/repo.js.git",
        "ssh://git@ssh.github.com:443/owner/repo.js.git",
        "ssh://github.com/owner/repo.js",
        "git+ssh://git@github.com/owner/repo.js.git",
        "git://github.com/owner/repo.js.git",
        "http://github.com/owner/repo.js",
        "https://github.com/owner/repo.js",
        "https://github.com/owner/repo.js.git",
        "https://github.com/owner/repo.js/",
        "https://github.com/owner/repo.js.git/\n",
        "https://someone@github.com/owner/repo.js.git",
        "https://someone:ghp_secret@github.com/owner/repo.js.git",
        "https://x-access-token:ghp_sec:ret@github.com/owner/repo.js.git",
        "https://some@one:ghp_s@cret@github.com/owner/repo.js.git",
        "HTTPS://someone:ghp_secret@github.com/owner/repo.js.git",
    ],
)
def test_the_compare_page_of_a_github_origin(origin: str) -> None:
    assert compare_url(origin, "main", BRANCH) == PAGE


@pytest.mark.spec("GIT-2")
@pytest.mark.parametrize(
    ("origin", "site"),
    [
        ("git@github.example.com:team/app.git", "https://github.example.com/team/app"),
        ("ssh://git@github.example.com:2222/team/app.git", "https://github.example.com/team/app"),
        ("https://github.example.com:8443/team/app.git", "https://github.example.com:8443/team/app"),
        ("https://me:token@github.example.com:8443/team/app", "https://github.example.com:8443/team/app"),
        ("http://github.example.com:8080/team/app", "http://github.example.com:8080/team/app"),
        ("https://company.ghe.com/team/app.git", "https://company.ghe.com/team/app"),
        ("https://github.com/me_corp/app.git", "https://github.com/me_corp/app"),
    ],
)
def test_a_companys_own_github(origin: str, site: str) -> None:
    assert compare_url(origin, "main", BRANCH) == f"{site}/compare/main...{BRANCH}"


@pytest.mark.spec("GIT-2", "ISS-9")
@pytest.mark.parametrize(
    ("origin", "api_url", "site"),
    [
        ("git@code.corp.example:team/app.git", "https://code.corp.example/api/v3", "https://code.corp.example"),
        ("https://code.corp.example/team/app.git", "https://code.corp.example/api/v3", "https://code.corp.example"),
        ("git@code.corp.example:team/app", "https://code.corp.example:8443/api/v3", "https://code.corp.example:8443"),
        ("ssh://git@code.corp.example:7999/team/app", "http://code.corp.example/api/v3", "http://code.corp.example"),
        ("git@corp.ghe.com:team/app.git", "https://api.corp.ghe.com", "https://corp.ghe.com"),
        ("git@github.com:team/app.git", "https://api.github.com", "https://github.com"),
        ("git@github.com:team/app.git", "https://code.corp.example/api/v3", "https://github.com"),
    ],
)
def test_where_the_api_is_there_is_a_github_by_whatever_name(origin: str, api_url: str, site: str) -> None:
    assert compare_url(origin, "main", BRANCH, api_url) == f"{site}/team/app/compare/main...{BRANCH}"
    assert compare_url("git@other.example:team/app.git", "main", BRANCH, api_url) is None


@pytest.mark.spec("GIT-2")
def test_what_is_special_in_an_address_is_escaped_in_branches() -> None:
    url = compare_url("git@github.com:team/app.git", "release/#1 50%", "aiflow/GH-1/é?")
    assert url == "https://github.com/team/app/compare/release/%231%2050%25...aiflow/GH-1/%C3%A9%3F"


@pytest.mark.spec("GIT-2")
@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "https://gitlab.com/owner/repo.git",
        "git@bitbucket.org:owner/repo.git",
        "https://notgithub.com/owner/repo.git",
        "https://github.com.evil-site/owner",
        "https://github.com",
        "https://github.com/owner",
        "https://github.com/owner/repo/tree/main",
        "https://github.com/owner/..",
        "https://gitlab.com/github.com/owner/repo.git",
        "https://user:pass/word@github.com/owner/repo.git",
        "https://github:1/x@gitlab.com/owner/repo.git",
        "git@github-work:owner/repo.git",
        "git@gitlab.com:github.com/repo.git",
        "/srv/git/github.com/owner/repo.git",
        "../github.com/owner/repo",
        "./github.com:owner/repo",
        "file:///srv/github.com/owner/repo.git",
        "C:/github.com/owner/repo.git",
        "https://github.com/owner/re po.git",
        "https://github.com/owner/repo?token=secret",
    ],
)
def test_other_origins_have_no_compare_page(origin: str | None) -> None:
    assert compare_url(origin, "main", BRANCH) is None


@pytest.mark.spec("GIT-2")
def test_branch_names_are_quoted() -> None:
    origin = "git@github.com:o/r.git"
    assert compare_url(origin, "fix#1 ü", "a/b%c") == "https://github.com/o/r/compare/fix%231%20%C3%BC...a/b%25c"
    assert compare_url(origin, "", "a") == "https://github.com/o/r/compare/a"
