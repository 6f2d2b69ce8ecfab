"""Settings and agents on the page (WEB-1): what counts, where it comes from, what it means; secrets are masked."""

from __future__ import annotations

import re

import pytest

from aiflow.settings import TABLE
from e2e.bench import Bench
from web_yard import WebBench

SECRET = "ghp_" + "s3cret" * 5


def of(text: str, name: str) -> str:
    """What the page says of one setting."""
    found = re.search(rf'<div id="of-{re.escape(name)}".*?</div>', text, re.DOTALL)
    assert found, name
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", found[0])).strip()


@pytest.mark.spec("WEB-1", "CFG")
def test_every_setting_is_shown_with_its_value_where_it_is_from_and_what_it_means(web: WebBench, bench: Bench) -> None:
    with (bench.root / "aiflow.toml").open("a") as file:
        file.write('\n[limits]\nsession_runs = 7\n[notify]\ncommand = "tell <b>me</b>"\n')
    text = web.page("/settings")
    for row in TABLE:
        assert row.name.startswith("agent.roles.") or f'id="of-{row.name}"' in text
    assert of(text, "limits.session_runs") == "limits.session_runs 7 (file) Maximum runs of one auto-run; 0: no limit"
    assert "(default)" in of(text, "limits.session_minutes")
    assert "<b>me" not in text
    short = web.page("/settings?show=changed")
    assert 'id="of-limits.session_runs"' in short
    assert 'id="of-limits.session_minutes"' not in short
    assert 'href="/settings"' in web.page("/doctor")


@pytest.mark.spec("WEB-1", "SEC")
def test_a_secret_in_a_setting_is_masked(web: WebBench, bench: Bench) -> None:
    with (bench.root / "aiflow.toml").open("a") as file:
        file.write(f'\n[notify]\ncommand = "curl -H {SECRET} example.org"\n')
    text = web.page("/settings")
    assert SECRET not in text
    assert "curl -H *** example.org" in of(text, "notify.command")


@pytest.mark.spec("WEB-1", "AGT-1")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_agents_that_were_found_are_listed_with_the_roles_that_use_them(web: WebBench, language: str) -> None:
    text = web.page("/agents", language=language)
    rows = re.findall(r"<tr id=.*?</tr>", text, re.DOTALL)
    assert any("claude-code" in row for row in rows)
    [used] = [row for row in rows if 'class="next"' in row]
    assert "implementer" in used
