"""`aiflow issues doctor` (DOC-1, ISS-1): who we are on GitHub, what we may do, and what aiflow would miss."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.github_issues import connect
from aiflow.domain.issues.headers import RunHeader
from aiflow.messages import Texts
from aiflow.usecases.issues.comments import header_comment
from e2e.bench import Bench
from github.hub import HookRow
from github.place import IssuePlace, issue_place
from github.scene import RUNNER

pytestmark = pytest.mark.spec("DOC-1", "ISS-1")
URL = "https://aiflow.example/hook"


@pytest.fixture
def place(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[IssuePlace]:
    bench = Bench(repository, tmp_path)
    with issue_place(bench, monkeypatch, capfd) as made:
        yield made
    bench.close()


def examined(place: IssuePlace, code: int = 0) -> dict[str, Any]:
    """Return what each check found, by its id; of several the worst."""
    told = place.here.json("issues", "doctor", code=code)
    rank = ("PASS", "WARN", "FAIL")
    found = {each["id"]: each for each in sorted(told["checks"], key=lambda each: rank.index(each["result"]))}
    return {"result": told["result"], **found}


def test_all_is_well_once_the_labels_are_made_and_nothing_is_written(place: IssuePlace) -> None:
    place.queued()
    found = examined(place)
    assert (found["result"], found["labels"]["result"], found["labels"]["fix"]) == (
        *("WARN", "WARN"),
        "aiflow issues labels",
    )
    assert place.api.writes == []
    place.sync()
    place.api.writes.clear()
    found = examined(place)
    assert found["result"] == "PASS"
    assert RUNNER in found["account"]["message"]
    assert found["blocked_by"]["result"] == "PASS"
    assert place.api.writes == []
    told = place.here("issues", "doctor", language="ja")
    assert "ラベルはそろっています" in told
    assert told.rstrip().endswith("PASS: Issue を実行できます。"), "runs of files are no matter of GitHub's"


def test_what_is_not_installed_or_not_signed_in_fails_with_what_to_do(
    place: IssuePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    found = examined(place, code=3)
    assert (found["github"]["reason_code"], found["result"]) == ("GITHUB_NOT_SIGNED_IN", "FAIL")
    assert "GITHUB_TOKEN" in found["github"]["message"]
    assert "start aiflow again" in found["github"]["evidence"][0]
    assert place.api.calls == []
    quick = place.here.json("doctor", code=3)["checks"][-1]
    assert quick["reason_code"] == "GITHUB_NOT_SIGNED_IN"

    def missing(_url: str) -> None:
        from aiflow.errors import EnvironmentProblemError

        raise EnvironmentProblemError(reason_code="GITHUB_NOT_INSTALLED", problem="httpx2")

    monkeypatch.setattr(connect, "HttpTransport", missing)
    found = examined(place, code=3)
    assert found["github"]["reason_code"] == "GITHUB_NOT_INSTALLED"
    assert "aiflow-local[github]" in found["github"]["evidence"][0]


def test_an_account_that_may_not_write_fails(place: IssuePlace) -> None:
    place.hub.person(RUNNER, "read")
    found = examined(place, code=3)
    assert (found["rights"]["result"], found["rights"]["reason_code"]) == ("FAIL", "GITHUB_RIGHTS")
    place.hub.has_issues = False
    assert "turned off" in examined(place, code=3)["rights"]["message"]


@pytest.mark.parametrize(
    ("fault", "code", "reason"),
    [((401, {}), 3, "GITHUB_TOKEN_INVALID"), ((500, {}), 3, "GITHUB_UNREACHABLE")],
)
def test_an_api_that_does_not_answer_fails(
    place: IssuePlace, fault: tuple[int, dict[str, str]], code: int, reason: str
) -> None:
    place.api.answers("", fault[0], times=99)
    assert examined(place, code=code)["github"]["reason_code"] == reason


def test_a_clock_that_is_off_and_calls_that_run_out_are_told(place: IssuePlace) -> None:
    clock = place.hub.clock
    place.hub.clock = lambda: clock() - timedelta(minutes=5)
    place.api.remaining = 100
    found = examined(place)
    assert (found["clock"]["result"], found["rate"]["result"]) == ("WARN", "WARN")
    assert "ahead" in found["clock"]["message"]
    place.hub.clock = lambda: clock() + timedelta(minutes=5)
    assert "behind" in examined(place)["clock"]["message"]


def test_a_webhook_is_looked_at_where_we_are_shown_it(place: IssuePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cannot see webhooks" in examined(place)["webhook"]["message"]
    place.hub.person(RUNNER, "admin")
    assert examined(place)["webhook"]["result"] == "PASS"
    monkeypatch.setenv("GITHUB_WEBHOOK_SECRET", "s")
    assert examined(place)["webhook"]["result"] == "WARN"
    now = place.hub.now()
    place.hub.hooks.append(HookRow(7, URL, ["issues"], deliveries=[(1, "issues", now, 200), (2, "issues", now, 502)]))
    failed = examined(place)["webhook"]
    assert (failed["result"], "1 of the last 2" in failed["message"]) == ("WARN", True)
    assert len(failed["evidence"]) == 1


def test_accounts_that_nobody_has_and_pull_requests_without_a_push_are_told(place: IssuePlace) -> None:
    place.set_up('service_account = "gone"\nrunners = ["rita"]\nbots = ["dependabot[bot]"]\npull_request = true\n')
    place.hub.person("dependabot[bot]", "none", is_bot=True)
    checks = place.here.json("issues", "doctor")["checks"]
    told = [each["message"] for each in checks if each["result"] == "WARN" and each["id"] != "labels"]
    assert ["gone" in told[0], "does not exist" in told[1], "rita" in told[2], "git.push" in told[3]] == [True] * 4
    assert any("The account dependabot[bot] exists" in each["message"] for each in checks)


@pytest.mark.spec("ISS-3", "DOC-1")
def test_a_run_header_of_somebody_who_is_not_listed_is_told_with_what_to_set(place: IssuePlace) -> None:
    number = place.queued()
    header = header_comment(RunHeader("RUN-1", "laptop", 1, 6, "agent:queued", "0" * 16), Texts("en"))
    for login in ("mel", "rita"):  # a writer may be another checkout, a reader only says so
        place.hub.comment(number, header, login)
    place.sync()
    told = [each for each in place.here.json("issues", "doctor")["checks"] if each["id"] == "accounts"]
    assert len(told) == 1
    assert (told[0]["result"], "mel started a run of GH-1" in told[0]["message"]) == ("WARN", True)
    assert "github.runners" in told[0]["message"]
    assert told[0]["fix"].startswith("aiflow settings")
    place.set_up('runners = ["mel"]\n')
    assert examined(place)["accounts"]["result"] == "PASS"
    place.set_up()
    place.later(number, 24 * 31)
    place.sync()
    assert "accounts" not in examined(place)


def test_the_doctor_of_a_checkout_asks_github_only_if_it_is_asked_for_everything(place: IssuePlace) -> None:
    quick = place.here.json("doctor")["checks"]
    assert [each["message"] for each in quick if each["id"] == "github"] == ["Issues of octo/demo are requests"]
    assert place.api.calls == []
    full = place.here.json("doctor", "--full")["checks"]
    assert {"github", "rights", "labels", "clock"} <= {each["id"] for each in full}
    place.bench.configure()
    assert not [each for each in place.here.json("doctor")["checks"] if each["id"] == "github"]


def looked_at_labels(place: IssuePlace) -> list[str]:
    """Return the calls about the repository's labels since the last time this was asked."""
    told = [ask.method for ask in place.api.calls if ask.path.split("?")[0].endswith(f"{place.hub.repo}/labels")]
    place.api.calls.clear()
    return told


@pytest.mark.spec("ISS-1")
def test_a_look_makes_missing_labels_once_and_reading_makes_none(place: IssuePlace) -> None:
    place.here.json("next")
    assert place.api.calls == []
    place.sync()
    assert looked_at_labels(place) == ["GET", *["POST"] * 4]
    for _ in range(2):
        place.here.json("issues", "sync", "--full")
    assert looked_at_labels(place) == []
    assert examined(place)["labels"]["result"] == "PASS"


@pytest.mark.spec("ISS-1", "ISS-11")
def test_an_account_that_may_not_make_labels_is_warned_of_and_tries_no_more(place: IssuePlace) -> None:
    place.api.answers(r"POST .*/labels$", 403, message="Resource not accessible by personal access token", times=9)
    place.sync()
    assert looked_at_labels(place) == ["GET", "POST"]
    place.here.json("issues", "sync", "--full")
    assert looked_at_labels(place) == []
    found = examined(place)
    assert (found["result"], found["labels"]["result"]) == ("WARN", "WARN")
    assert "GitHub refused" in found["labels"]["message"]
    assert found["labels"]["fix"] == "aiflow issues labels"
