"""What a report says of a step (RUN-19): recorded as it happens, no more of it than a person reads."""

from __future__ import annotations

import pytest

from aiflow.domain.runs.events import testing as begin_tests
from aiflow.domain.runs.step_record import MOST_FILES, EndedTest, Footprint, Review, footprint_of, judged, noted_test
from aiflow.domain.runs.worktree import Changes, FileChange
from run_builders import in_tests


@pytest.mark.spec("RUN-19")
def test_many_files_are_counted_and_only_the_first_are_named() -> None:
    files = tuple(FileChange(f"{number}.txt", 2, 1) for number in range(MOST_FILES + 5))
    found = footprint_of(Changes(files))
    assert found == Footprint(files[:MOST_FILES], 5, 2 * len(files), len(files))
    assert found.total == len(files)
    assert footprint_of(Changes()) == Footprint()


@pytest.mark.spec("RUN-19")
def test_each_kind_of_test_counts_as_it_ended_last_and_none_from_before_the_last_try() -> None:
    failed, passed = EndedTest("unit", 1.0, "UNIT_TEST_FAILED", 1), EndedTest("unit", 2.0, None, 0)
    late = EndedTest("e2e", 3.0, "TEST_TIMEOUT")
    run = noted_test(noted_test(noted_test(in_tests(), failed), late), passed)
    assert run.work.record.tests == (late, passed)
    assert [each.has_passed for each in run.work.record.tests] == [False, True]
    assert begin_tests(run).work.record.tests == ()


@pytest.mark.spec("RUN-19")
def test_every_review_is_kept_in_order() -> None:
    reviews = (Review(is_passed=False, findings=("a", "b")), Review(is_passed=True))
    run = judged(judged(in_tests(), reviews[0]), reviews[1])
    assert run.work.record.reviews == reviews
    assert run.work.record.footprint.total == 2
