"""Two checkouts of one repository watch the same issues (ISS-3, ISS-12): one of them runs each."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import fresh_git
from e2e.bench import Bench
from github.places import a_place
from waiting import wait_until


@pytest.fixture
def benches(repository: Path, tmp_path: Path) -> Iterator[tuple[Bench, Bench]]:
    root = tmp_path / "other"
    root.mkdir()
    fresh_git.make_repository(root)
    made = Bench(repository, tmp_path), Bench(root, tmp_path / "elsewhere")
    yield made
    for bench in made:
        bench.close()


@pytest.mark.contract
@pytest.mark.spec("ISS-3", "ISS-12")
def test_of_two_watches_one_starts_an_issue(benches: tuple[Bench, Bench]) -> None:
    one, other = benches
    with a_place(one) as place:
        place.join(other)
        number = place.queued()
        watches = [bench.start("issues", "watch", "--json") for bench in benches]
        wait_until(lambda: place.is_finished(number))
        for watch in watches:
            watch.send_signal(signal.SIGINT)
            _, err = watch.communicate(timeout=60)
            assert (watch.returncode, "Traceback" in err) == (0, False), err
        assert sorted(len(bench.run_ids(f"GH-{number}")) for bench in benches) == [0, 1]
        assert place.shown(number)[0] == ["P0", "agent:running"]
        headers = [each.body for each in place.hub.rows[number].comments if each.body.startswith("**aiflow is working")]
        assert sum("Withdrawn" not in body for body in headers) == 1
