"""Choices of a question: shown with numbers, picked by number or name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.agents.choices import numbered, picked

CHOICES = ("Allow once", "Always allow", "Reject", "12")


@pytest.mark.spec("RUN-10")
@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ("1", "Allow once"),
        (" 3. ", "Reject"),
        ("always ALLOW", "Always allow"),
        ("Reject\n", "Reject"),
        ("12", "12"),
        ("0", "0"),
        ("5", "5"),
        ("-1", "-1"),
        ("²", "²"),
        ("9" * 30, "9" * 30),
        ("0000000015", "0000000015"),
        ("no, use make", "no, use make"),
        ("", ""),
    ],
)
def test_an_answer_means_a_choice_or_itself(answer: str, meant: str) -> None:
    assert picked(answer, CHOICES) == meant


def test_without_choices_every_answer_is_its_own() -> None:
    assert picked("1", ()) == "1"


def test_choices_are_shown_one_to_a_line() -> None:
    assert numbered(("Allow\nonce", "Reject")) == ["1. Allow once", "2. Reject"]
    assert numbered(()) == []


@given(st.text(), st.lists(st.text()))
def test_what_is_shown_can_be_picked(answer: str, choices: list[str]) -> None:
    assert picked(answer, choices) in (answer, *choices)
    for number, choice in enumerate(choices, 1):
        assert picked(str(number), choices) == choice
