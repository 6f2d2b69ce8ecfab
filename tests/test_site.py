"""The documentation as a site: every page finds its place, and what leads nowhere is found."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import web_site

ENGLISH, JAPANESE = web_site.EDITIONS


def test_every_page_of_both_editions_finds_its_place(tmp_path: Path) -> None:
    for edition in web_site.EDITIONS:
        web_site.lay_out(edition, tmp_path / edition.language)
    english = {str(path.relative_to(tmp_path / "en")) for path in (tmp_path / "en").rglob("*.*")}
    assert {
        "index.md",
        "contents.md",
        "tutorial.md",
        "reference/cli.md",
        "security.md",
        "project/security.md",
        "project/license.md",
    } <= english
    assert not any(name.startswith("ja/") for name in english)
    assert (tmp_path / "ja/reference/cli.md").read_text("utf-8") != (tmp_path / "en/reference/cli.md").read_text(
        "utf-8"
    )
    assert (tmp_path / "ja/pictures/demo.ja.svg").is_file()
    assert "mermaid" not in (tmp_path / "en/index.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("link", "path", "edition", "place"),
    [
        ("docs/quickstart.md", "README.md", ENGLISH, "quickstart.md"),
        ("../README.md#status", "docs/spec.md", ENGLISH, "index.md#status"),
        ("README.ja.md", "README.md", ENGLISH, "ja/index.html"),
        ("../SECURITY.md", "docs/security.md", ENGLISH, "project/security.md"),
        ("docs/security.md#who-is-trusted", "SECURITY.md", ENGLISH, "../security.md#who-is-trusted"),
        ("docs/ja/reference/cli.md", "README.ja.md", JAPANESE, "reference/cli.md"),
        ("../../reference/json.md#run", "docs/ja/reference/cli.md", JAPANESE, "../../reference/json.html#run"),
        ("docs/pictures/demo.ja.svg", "README.ja.md", JAPANESE, "pictures/demo.ja.svg"),
        ("https://example.com/a", "README.md", ENGLISH, "https://example.com/a"),
    ],
)
def test_a_link_leads_to_where_the_page_is_on_the_site(
    link: str, path: str, edition: web_site.Edition, place: str
) -> None:
    assert web_site.address(link, path, edition) == place


def test_a_link_to_what_the_site_has_not_stops_the_build() -> None:
    with pytest.raises(LookupError, match="Makefile"):
        web_site.address("Makefile", "README.md", ENGLISH)


def test_headings_have_the_anchors_of_github() -> None:
    page = web_site._prose("## `aiflow run`\n\n## 終了コード\n\n## 終了コード\n", "README.md", ENGLISH, Counter())
    assert page.split("\n")[::2] == [
        "## `aiflow run` {#aiflow-run}",
        "## 終了コード {#終了コード}",
        "## 終了コード {#終了コード-1}",
    ]


def test_the_navigation_is_the_index() -> None:
    first, contents, *sections = web_site.navigation(ENGLISH)
    assert (first, contents) == ("index.md", "contents.md")
    found = {
        name: [place for each in inside for place in each.values()]
        for each in sections
        for name, inside in each.items()
    }
    assert "tutorial.md" in found["Start here"]
    assert "reference/cli.md" in found["Reference"]
    assert len(found["For those who work on aiflow"]) > 5


def test_what_leads_nowhere_and_what_comes_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="b.html">b</a><a href="#top">up</a><a href="b.html#here">here</a><a href="ja">ja</a>'
        '<a href="c.html">c</a><a href="b.html#there">there</a><img src="x.png"><script src="//cdn.example/x.js"></script>'
        '<a href="https://example.com/">elsewhere, by a click</a>'
    )
    (tmp_path / "b.html").write_text('<h2 id="here"></h2>')
    (tmp_path / "ja").mkdir()
    (tmp_path / "ja/index.html").write_text("<p>")
    assert sorted(web_site.broken(tmp_path)) == [
        "a.html: b.html#there has no such heading",
        "a.html: c.html does not exist",
        "a.html: loads //cdn.example/x.js from elsewhere",
        "a.html: x.png does not exist",
    ]


def test_a_page_that_the_search_does_not_know_is_found(tmp_path: Path) -> None:
    (tmp_path / "ja").mkdir()
    for name in ("index.html", "a.html", "404.html", "ja/index.html"):
        (tmp_path / name).write_text("<p>")
    (tmp_path / "search.json").write_text('{"items": [{"location": "index.html#here"}]}')
    (tmp_path / "ja/search.json").write_text('{"items": []}')
    assert list(web_site.unsearchable(tmp_path, ENGLISH)) == ["a.html: not found by the search"]
    assert list(web_site.unsearchable(tmp_path, JAPANESE)) == ["ja/index.html: not found by the search"]


def test_a_question_that_the_search_does_not_answer_is_found(tmp_path: Path) -> None:
    """What stands for the site's script here finds a page whose text has the question in it."""
    (tmp_path / "ja/assets/javascripts/workers").mkdir(parents=True)
    (tmp_path / "ja/search.json").write_text(
        json.dumps({"items": [{"location": "a.html#here", "text": "受け入れる"}, {"location": "b.html", "text": "朝"}]})
    )
    (tmp_path / "ja/assets/javascripts/workers/search.0.js").write_text(
        "let items; self.onmessage = ({data: {type, data}}) => {"
        " if (type === 0) { items = data.items; self.postMessage({type: 1}); return; }"
        " const found = [...items.keys()].filter((id) => items[id].text.includes(data.input)).map((id) => ({id}));"
        " self.postMessage({type: 3, data: {items: found}}); };"
    )
    asked = {"受け入れ": "a.html", "朝": "a.html", "夜": "b.html"}
    assert list(web_site.unanswered(tmp_path, JAPANESE, asked)) == [
        "ja/search: 朝 does not lead to a.html, but to b.html",
        "ja/search: 夜 does not lead to b.html, but to nothing",
    ]
