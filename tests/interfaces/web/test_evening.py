"""The check before auto-run starts (WEB-1): what will run, what cannot, what limits it, and why it cannot start."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from aiflow.usecases.server.start_work import Begun, WorkOrder
from e2e.bench import Bench
from web_yard import WebBench

START = "/auto/start"


def words(text: str) -> str:
    """A page's text without its marks."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))


@pytest.mark.spec("WEB-1")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_evening_check_says_what_runs_what_cannot_and_what_limits_it(
    web: WebBench, bench: Bench, language: str
) -> None:
    path = bench.add_request("RQ-2", depends_on="[RQ-1]")
    path.write_text(path.read_text().replace("# RQ-2", "# <b>Second</b>"))
    accept = {"en": "by you: what depends on a finished", "ja": "手動です。"}[language]
    said = words(web.page(START, language=language))
    assert (accept in said, "Second" in said) == (True, False)  # nobody accepts RQ-1 tonight
    settings = bench.root / "aiflow.toml"
    settings.write_text('accept = "auto"\n' + settings.read_text())
    for number in (3, 4):
        bench.add_request(f"RQ-{number}", status="draft")
    for number in range(10, 20):
        bench.add_request(f"RQ-{number}", priority="P3")
    text = web.page(START, language=language)
    assert text.index('href="/requests/RQ-1"') < text.index('href="/requests/RQ-2"')
    assert "&lt;b&gt;Second" in text
    assert 'href="/requests/RQ-19"' not in text
    said = words(text)
    assert ("2 more after these" if language == "en" else "ほか2件") in said
    not_ready = "Request is not ready: draft 2 RQ-3 RQ-4" if language == "en" else "draft（下書き） 2 RQ-3 RQ-4"
    assert not_ready in said
    assert ("No limit on time or cost." if language == "en" else "時間や費用の上限はありません。") in said
    assert "auto.stop_after_failed" in said
    assert "<code>main</code>" in text
    assert "disabled" not in text


@pytest.mark.spec("WEB-1")
def test_a_ceiling_of_the_settings_says_where_it_comes_from(web: WebBench, bench: Bench) -> None:
    with (bench.root / "aiflow.toml").open("a") as file:
        file.write("\n[limits]\nsession_cost_usd = 12.5\n")
    text = web.page(START)
    assert "limits.session_cost_usd $12.50 (file)" in words(text)
    assert 'name="max_cost_usd" min="0" step="0.01" inputmode="decimal" placeholder="12.5"' in text
    assert "No limit on time or cost." not in text


@pytest.mark.spec("WEB-1")
def test_a_fault_keeps_auto_run_from_starting_and_is_named(web: WebBench, bench: Bench) -> None:
    (bench.root / "loose.py").write_text("x = 1\n")
    bench.git("add", "loose.py")
    text = web.page(START)
    assert "WORKTREE_DIRTY" in text
    assert re.search(r"<button[^>]+ disabled aria-describedby=", text)
    assert "No run can start or resume until this is fixed." in text


@pytest.mark.spec("WEB-1")
def test_where_nothing_is_runnable_nothing_offers_to_start(web: WebBench, bench: Bench) -> None:
    for path in ("/", "/queue", "/doctor"):
        assert f'href="{START}" data-dialog' in web.page(path)
    (bench.root / "requests/RQ-1.md").unlink()
    bench.add_request("RQ-2", status="draft")
    for path in ("/", "/queue", "/doctor"):
        assert START not in web.page(path)
    text = web.page(START)
    assert "No runnable request" in text
    assert re.search(r"<button[^>]+ disabled", text)


@pytest.mark.spec("WEB-1", "AUT-3")
def test_ceilings_of_this_night_are_kept_by_the_auto_run_that_starts(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2")
    bad = [("max_runs", each) for each in ("x", "inf", "nan", "1e400", "-1", "1.5", "1_0", "9" * 5000)]
    for name, value in (*bad, ("max_cost_usd", "nan"), ("until", "25:00"), ("until", "1\0")):
        assert web.submit(START, {name: value})[0] == 422, (name, value)
    assert web.submit(START, {"max_runs": "1", "until": "", "max_minutes": "", "max_cost_usd": ""})[0] == 200
    web.until_idle()
    assert "AUTO_RUNS_LIMIT" in web.page("/")
    assert len(bench.run_ids()) == 1


@pytest.mark.spec("WEB-1")
def test_a_time_of_another_zone_ends_auto_run_at_that_moment(web: WebBench, monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[WorkOrder] = []

    def start(order: WorkOrder) -> Begun:
        orders.append(order)
        return Begun(None, None, 1)

    monkeypatch.setattr(web.server, "work", SimpleNamespace(start=start, current=None))
    meant = datetime(2026, 1, 2, 1, 17, tzinfo=UTC)
    here = f"--until={meant.astimezone():%H:%M}"
    for until_at, told in (
        (meant.isoformat(), here),
        ("", "--until=6:47"),
        ("0001-01-01T00:00:00+14:00", "--until=6:47"),
    ):
        assert web.submit(START, {"until": "6:47", "until_at": until_at})[0] == 200
        assert orders[-1].argv == ("auto", told)
    assert web.submit(START, {"until": "", "until_at": meant.isoformat()})[0] == 200
    assert orders[-1].argv == ("auto",)
    zone = meant.astimezone().isoformat()[-6:]
    assert f"data-zone>UTC{zone}<" in web.page(START)  # whose clock is meant where no script runs


@pytest.mark.spec("WEB-1")
def test_the_evening_check_is_a_part_for_a_script_and_a_page_without_one(web: WebBench) -> None:
    part = web.client.get(START, headers={"HX-Request": "true"}).text
    assert part.lstrip().startswith("<form")
    assert 'data-draft="auto until"' in part
    assert "data-close" in part
    page = web.page(START)
    assert 'class="rail"' in page
    assert 'action="/auto/start"' in page
    # A script that fetched this page again to bring it up to date would get the part, and empty the page with it.
    assert "hx-get" not in page
    assert "hx-get" in web.page("/queue")
