"""Namespaces: what they may be called, and what a checkout's own is called (QUE-5)."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.queue.namespace import NAMESPACE_CHARACTERS, check_namespace, default_namespace
from aiflow.errors import BadInputError


@pytest.mark.parametrize("name", ["a", "shop", "my-app_2.dev", "9", "x" * NAMESPACE_CHARACTERS])
def test_a_namespace_may_be_chosen(name: str) -> None:
    assert check_namespace(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", "my app", "a/b", "..", ".a", "-a", "_a", "a#b", "店", "a\n", "x" * (NAMESPACE_CHARACTERS + 1)]
)
def test_a_namespace_that_cannot_be_used_is_refused(name: str) -> None:
    with pytest.raises(BadInputError) as caught:
        check_namespace(name)
    assert caught.value.reason_code == "NAMESPACE_INVALID"
    assert caught.value.context == {"namespace": name, "most": NAMESPACE_CHARACTERS}


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("shop", "shop-01234567"),
        ("My Shop (2)", "My-Shop-2-01234567"),
        ("Café", "Cafe-01234567"),
        ("店", "project-01234567"),
        ("", "project-01234567"),
        ("...", "project-01234567"),
        (".config", "config-01234567"),
        ("_a_", "a-01234567"),
        ("x" * 200, "x" * 55 + "-01234567"),
    ],
)
def test_a_checkouts_own_namespace_is_its_folder_and_a_hash(folder: str, name: str) -> None:
    assert default_namespace(folder, "0123456789abcdef") == name


@given(st.text("aB9 ._-/#éﬁ店😀\n\ud800"))
def test_a_checkouts_own_namespace_can_always_be_used(folder: str) -> None:
    digest = hashlib.sha256(folder.encode("utf-8", "surrogatepass")).hexdigest()
    assert check_namespace(default_namespace(folder, digest))
