"""Every page as it is drawn (ERR-1, WEB-1): its words in both languages, as a person reads them."""

from __future__ import annotations

import html
import re

import pytest

from interfaces.test_rendered import faults
from web_yard import WebBench

PAGES = ("/", "/backlog", "/new", "/queue", "/doctor", "/activity", "/keys", "/auto/start", "/settings", "/agents")


@pytest.mark.spec("ERR-1", "WEB-1")
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_written_with_care(web: WebBench, path: str, language: str) -> None:
    body = re.sub(
        r"<(script|style|code|pre|template)\b.*?</\1>", " ", web.page(path, language=language), flags=re.DOTALL
    )
    text = html.unescape(re.sub(r"[ \n]*<[^>]*>[ \n]*", "\n", body))
    assert faults(text, language) == []
