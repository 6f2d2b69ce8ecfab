"""The colours of texts: every class has one, and each can be read on every ground it may stand on, in both themes (AA)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pygments.token import STANDARD_TYPES, Token

import aiflow.web
from aiflow.web.text.code_colour import code_classes

STATIC = Path(aiflow.web.__file__).parent / "static"
CSS = (STATIC / "text.css").read_text(encoding="utf-8")
TOKEN = re.compile(r"(--[\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
# The design's own, as far as they are needed here.
GIVEN = {
    "--bg": ("#ffffff", "#0f151a"),
    "--bg-sunk": ("#f5f7f8", "#0b1014"),
    "--bg-hover": ("#eef2f4", "#172028"),
    "--ink": ("#14212b", "#e7edf1"),
    "--ink-2": ("#475763", "#a9b7c1"),
    "--wait": ("#8a4b00", "#f0b45f"),
    "--wait-soft": ("#fdf2e1", "#2e2210"),
    "--fail": ("#a81d3a", "#ff97a1"),
    "--fail-soft": ("#fcebee", "#37161d"),
    "--add-bg": ("#e6f5f0", "#0f2a25"),
    "--del-bg": ("#fcedef", "#33171d"),
}
COLOURS = {**GIVEN, **{name: (light, dark) for name, light, dark in TOKEN.findall(CSS)}}
TINTS = [f"--ansi-on-{number}" for number in range(8)]
LOG = ["--bg", "--bg-sunk", "--bg-hover", "--fail-soft", *TINTS]
CODE = ["--bg", "--bg-sunk", "--bg-hover", "--add-bg", "--del-bg"]
PAIRS = [
    *((f"--ansi-{number}", ground) for number in range(16) for ground in LOG),
    *((name, ground) for name in ("--ink-2", "--fail") for ground in LOG),
    *((name, ground) for name in COLOURS if name.startswith("--hl-") for ground in CODE),
    *(("--ink", ground) for ground in ("--add-word", "--del-word")),
    ("--wait", "--wait-soft"),
]


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_computed_as_the_standard_has_it() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.spec("WEB-3")
def test_every_colour_can_be_read_on_every_ground_in_both_themes() -> None:
    assert len([name for name in COLOURS if name.startswith("--hl-")]) == 7
    weak = {
        (ink, ground, theme): contrast(COLOURS[ink][number], COLOURS[ground][number])
        for ink, ground in PAIRS
        for number, theme in enumerate(("light", "dark"))
    }
    assert {where: ratio for where, ratio in weak.items() if ratio < 4.5} == {}


def test_the_designs_colours_are_the_ones_that_were_computed_with() -> None:
    design = STATIC / "app.css"
    told: dict[str, tuple[str, str]] = {}
    for name, light, dark in TOKEN.findall(design.read_text(encoding="utf-8") if design.exists() else ""):
        told.setdefault(name, (light, dark))
    assert {name: told.get(name, pair) for name, pair in GIVEN.items()} == GIVEN


def test_every_class_of_a_line_is_drawn() -> None:
    names = [f"ansi-{number}" for number in range(16)] + [f"ansi-on-{number}" for number in range(16)]
    names += ["ansi-bold", "ansi-dim", "ansi-italic", "ansi-underline", "ansi-inverse", "unseen", "w"]
    assert [name for name in names if not re.search(rf"\.{name}\b(?!-)[^{{;]*\{{", CSS)] == []


def test_what_code_is_made_of_has_a_colour() -> None:
    begins = re.findall(r'\[class\^="(hl-\w+)"\]', CSS)
    named = set(re.findall(r"\.(hl-\w+)", CSS))
    roots = (
        Token.Comment,
        Token.Keyword,
        Token.Literal,
        Token.Name.Function,
        Token.Name.Class,
        Token.Name.Tag,
        Token.Error,
    )
    for kind, name in STANDARD_TYPES.items():
        if any(kind in root for root in roots):
            assert f"hl-{name}" in named or f"hl-{name}".startswith(tuple(begins)), kind
    assert named <= code_classes()


def test_no_style_is_from_elsewhere() -> None:
    assert "url(" not in CSS
    assert "@import" not in CSS
    assert "!important" not in CSS
