"""How somebody looks at a page: in which language, light or dark, on which screen."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import pytest

LANGUAGES = ("en", "ja")
THEMES = ("light", "dark")
WIDTHS = (1440, 390)
HEIGHTS = {1440: 900, 390: 844}
LOCALES = {"en": "en-US", "ja": "ja-JP"}


class Look(NamedTuple):
    """One way to look at a page."""

    language: str = "en"
    theme: str = "light"
    width: int = 1440

    def __str__(self) -> str:
        return f"{self.language}-{self.theme}-{self.width}"

    @property
    def is_phone(self) -> bool:
        """Whether it is a small screen that is touched."""
        return self.width < 600

    @property
    def context(self) -> dict[str, Any]:
        """What a browser is told about it."""
        return {
            "locale": LOCALES[self.language],
            "color_scheme": self.theme,
            "viewport": {"width": self.width, "height": HEIGHTS[self.width]},
            "is_mobile": self.is_phone,
            "has_touch": self.is_phone,
            "reduced_motion": "reduce",
            "timezone_id": "UTC",
        }


LOOKS = tuple(itertools.starmap(Look, itertools.product(LANGUAGES, THEMES, WIDTHS)))
both_languages = pytest.mark.parametrize("look", [Look(language) for language in LANGUAGES], ids=str)
both_widths = pytest.mark.parametrize("look", [Look(width=width) for width in WIDTHS], ids=str)
# In each of them `fine` looks at both themes: a page is the same in both but for its colours, and need not be opened twice.
each_size = pytest.mark.parametrize("look", [look for look in LOOKS if look.theme == THEMES[0]], ids=str)
# Four looks in which every language meets every theme and every width.
PAIRS = (Look("en", "light", 1440), Look("en", "dark", 390), Look("ja", "light", 390), Look("ja", "dark", 1440))
each_pair = pytest.mark.parametrize("look", PAIRS, ids=str)
