"""Markdown that others wrote: drawn as far as it is harmless, and shown as text where it is not."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from aiflow.web.text.code_colour import LANGUAGES, colour_code
from aiflow.web.text.markdown import render_markdown, without_title


class Seen(HTMLParser):
    """What a browser would make of a page: its tags, their attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(str(html))  # added to a `Markup`, a text would be escaped

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of each of these tags."""
        return [attributes for name, attributes in self.tags if name == tag]


def seen(text: str) -> Seen:
    return Seen(render_markdown(text).html)


HARMLESS = {"href", "title", "rel", "class", "start", "tabindex"}
NAMES = set(
    "a blockquote br code div em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul".split()  # noqa: SIM905
)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<div onclick='x()'>\n\n**bold**\n\n</div>",
        "<!-- hidden --> <style>*{}</style>",
        "```html\n<script>alert(1)</script>\n```",
        '```"><script>alert(1)</script>\nx\n```',
        "`<script>`",
        '[a](https://x.example/"onmouseover="alert(1))',
        "[a](https://x.example '\"><script>')",
        "| <script> | b |\n|-|-|\n| <svg/onload=x()> | d |",
        "![<script>](https://x.example/a.png)",
        "https://x.example/<script>alert(1)</script>",
        '"><iframe src=javascript:alert(1)>',
    ],
)
def test_markup_in_a_text_is_text(text: str) -> None:
    page = seen(text)
    assert {name for name, _ in page.tags} <= NAMES
    assert {name for _, attributes in page.tags for name in attributes} <= HARMLESS
    for word in ("script", "onerror", "onclick", "svg", "iframe", "hidden"):  # nothing is lost either
        if word in text and "](" not in text and '```"' not in text:
            assert word in page.text


@pytest.mark.parametrize(
    ("address", "leads_to"),
    [
        ("https://x.example/a", "https://x.example/a"),
        ("http://x.example", "http://x.example"),
        ("mailto:ada@x.example", "mailto:ada@x.example"),
        ("javascript:alert(1)", None),
        ("JaVaScRiPt:alert(1)", None),
        ("&#106;avascript:alert(1)", None),
        ("data:text/html,x", None),
        ("vbscript:x", None),
        ("file:///etc/passwd", None),
        ("ftp://x.example", None),
        ("//x.example/a", None),
        ("/requests/RQ-1", None),
        ("#part", None),
        ("docs/a.md", None),
    ],
)
def test_a_link_leads_out_or_nowhere(address: str, leads_to: str | None) -> None:
    links = seen(f"[words]({address})").all("a")
    assert [link.get("href") for link in links if link.get("href")] == ([leads_to] if leads_to else [])
    assert all(link["rel"] == "noopener noreferrer" for link in links)
    assert "words" in seen(f"[words]({address})").text


def test_no_image_is_loaded() -> None:
    page = seen("![a *cat*](https://x.example/cat.png) ![](https://x.example/b.png) ![c](javascript:x)")
    assert [link.get("href") for link in page.all("a")] == ["https://x.example/cat.png", "https://x.example/b.png"]
    assert "a *cat*" in page.text
    assert "https://x.example/b.png" in page.text


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("See https://x.example/a_b_c.", "https://x.example/a_b_c"),
        ("(https://x.example/a(b))", "https://x.example/a(b)"),
        ("<https://x.example/a>", "https://x.example/a"),
        ("見て https://x.example/a。次", "https://x.example/a"),
        ("https://x.example/?a=1&b=2, and", "https://x.example/?a=1&b=2"),
        ("[https://x.example/a](https://x.example/a)", "https://x.example/a"),
    ],
)
def test_an_address_is_a_link_without_the_sentence_around_it(text: str, address: str) -> None:
    assert [link["href"] for link in seen(text).all("a")] == [address]


def test_an_address_in_code_is_code() -> None:
    assert seen("`https://x.example`\n\n```\nhttps://x.example\n```").all("a") == []


def test_headings_stand_below_those_of_the_page_and_skip_no_level() -> None:
    text = "## first\n#### second\n# third\n### fourth\n\nfifth\n---\n" + "#" * 6 + " sixth"
    levels = [name for name, _ in seen(text).tags if name.startswith("h") and name != "hr"]
    assert levels == ["h3", "h4", "h3", "h4", "h4", "h5"]
    assert [name for name, _ in Seen(render_markdown("# a\n## b\n### c", top=5).html).tags] == ["h5", "h6", "h6"]
    assert "id" not in {name for _, attributes in seen(text).tags for name in attributes}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("# Sort it\n\nBy date.", "\nBy date."),
        ("\n## Sort it", ""),
        ("# Sort it well\nBy date.", "# Sort it well\nBy date."),
        ("Sort it\nBy date.", "Sort it\nBy date."),
    ],
)
def test_a_heading_that_the_page_has_already_is_left_out(text: str, left: str) -> None:
    assert without_title(text, "Sort it") == left


def test_tasks_are_boxes() -> None:
    page = seen("- [ ] open\n- [x] done\n- [y] words\n- [x]\n\n1. [X] counted\n\n[x] no list")
    assert [item.get("class") for item in page.all("li")] == ["task", "task", None, None, "task"]
    assert page.text.count("☐") == 1
    assert page.text.count("☑") == 2
    assert page.all("input") == []


def test_tables_have_sides_without_styles() -> None:
    page = seen("| a | b | c |\n|:-:|--:|:--|\n| 1 | 2 | 3 |")
    assert [cell.get("class") for cell in page.all("td")] == ["at-center", "at-end", None]
    assert page.all("div") == [{"class": "wide", "tabindex": "0"}]


def test_code_has_classes_for_its_colours() -> None:
    page = seen("```python title=x\ndef f(): return '<b>'\n```")
    assert {"hl-k", "hl-nf"} <= {str(span.get("class")) for span in page.all("span")}
    assert page.text.split("\n") == ["python title=x", "def f(): return '<b>'", "", ""]
    assert seen("```nonsense\ndef f(): pass\n```").all("span") == []
    assert seen("    def f(): pass").all("span") == []


def test_code_says_which_file_it_is_for() -> None:
    drawn = render_markdown("```replace <b>.py attempt=1\nx\n```\n\n```python\ny\n```").html
    assert drawn.startswith('<p class="code-of">replace &lt;b&gt;.py attempt=1</p>\n<pre')
    assert drawn.count("code-of") == 1


def test_a_note_of_our_own_is_drawn_without_its_marks() -> None:
    assert render_markdown("a\n\n<!-- aiflow: Read `b`, and c. -->").html == (
        '<p>a</p>\n<p class="note">Read <code>b</code>, and c.</p>\n'
    )
    for other in ("<!-- b -->", "a <!-- aiflow: b -->", "<!-- aiflow: b --> c -->"):
        assert escape(other) in render_markdown(other).html


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_coloured_code_says_what_it_said(language: str) -> None:
    code = '<a b="c">&amp; {x: 1} # "y"\n\n\tif (z) return \'w\';\n'
    assert Seen(colour_code(code, language)).text == code


def test_what_nobody_sees_is_seen() -> None:
    text = "\ufeffpay\u202eload \udcff \ud800 a\u200bb \x00 \x1b[31m\n```\n\u2066x\n```\n[a\u202e](https://x.example)"
    html = render_markdown(text).html
    html.encode()
    for number in ("\\u202e", "\\xff", "\\ud800", "\\u200b", "\\x00", "\\x1b", "\\u2066"):
        assert number in html
    assert "\ufeff" not in html


def test_a_long_text_is_cut_behind_a_line_and_says_so() -> None:
    view = render_markdown("first\n\nsecond\n\nthird", cap=10)
    assert (view.html.strip(), view.left_out) == ("<p>first</p>", 13)
    assert render_markdown("a" * 20, cap=10) == ("<p>aaaaaaaaaa</p>\n", 10)
    assert render_markdown("```\na\nb\nc\n```", cap=8).html.count("</pre>") == 1
    assert render_markdown("a\r\nb\r\n").left_out == 0


@pytest.mark.timing
@pytest.mark.parametrize(
    "piece",
    ["[", "*", "a**b", "![[]()", "<", "` `` ", ">", "- ", "[a](", "https://", "|a|b|\n|-|-|\n", "~~a", "# a\n", "(https://a))", "\n- [x] a\n\n"],
)  # fmt: skip
def test_no_text_takes_long(piece: str) -> None:
    began = time.thread_time()
    render_markdown(piece * 40_000)
    assert time.thread_time() - began < 10  # a fifth to a whole second; what takes the square of it takes minutes


@pytest.mark.timing
@pytest.mark.parametrize("piece", ["a\n", "a ", "{", "a.", "'", "<?", "[[\n", "/*\n"])
@pytest.mark.parametrize("language", ["java", "csharp", "python", "html", "c"])
def test_no_code_takes_long(language: str, piece: str) -> None:
    line = (piece * 400)[:380] + "\n"
    began = time.thread_time()
    assert "<span" in colour_code((line * 400)[:1_000], language) or language == "html"
    render_markdown(f"```{language}\n{(line * 40)[:7_900]}\n```\n" * 3)
    assert time.thread_time() - began < 8  # Pygments' own Java and C# need longer for one of the three


def test_code_that_could_take_long_has_no_colours() -> None:
    assert "<span" in colour_code("a = 1\n" * 500, "python")
    for code in ("a = 1\n" * 2_000, f"a = '{'x' * 500}'\n", "a = 1\n" + " \n" * 20):
        assert colour_code(code, "python") == escape(code)


def test_an_address_without_end_has_one() -> None:
    (link,) = seen("https://x.example/" + "a" * 30_000).all("a")
    assert len(str(link["href"])) < 2_100


@given(st.text(st.one_of(st.characters(), st.sampled_from("#*_`[]()<>!|-\n\t &;:/\"'~\\\udcff\u202e"))))
def test_any_text_can_be_drawn_and_sent(text: str) -> None:
    html = render_markdown(text).html
    html.encode()
    page = Seen(html)
    assert {name for name, _ in page.tags} <= NAMES
    assert {name for _, attributes in page.tags for name in attributes} <= HARMLESS
