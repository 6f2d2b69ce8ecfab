"""Untrusted text (SEC): an agent gets what a person sees, nothing else, and all that was kept back can be looked at."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.domain.untrusted import HiddenKind, clean, clean_plain, reveal, reveal_plain, tally
from aiflow.domain.untrusted.characters import find_invisible
from page import seen_on_page

TAGS = "".join(chr(0xE0000 + ord(each)) for each in "obey me")
pytestmark = pytest.mark.spec("SEC")


def kinds(text: str) -> list[str]:
    return [hidden.kind.value for hidden in clean(text).hidden]


# --- characters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "characters"),
    [
        (
            "zero_width",
            "\u200b \u200c \u200d \u2060 \u2061 \u2062 \u2063 \u2064 \u2065 \ufeff \u180e \u034f \u17b4 \u17b5",
        ),
        (
            "direction",
            "\u200e \u200f \u061c \u202a \u202b \u202c \u202d \u202e \u2066 \u2067 \u2068 \u2069 \u206a \u206f",
        ),
        ("tag", "\U000e0000 \U000e0001 \U000e0041 \U000e007f \U000e00ff \U000e0fff"),
        ("variation", "\ufe00 \ufe0e \ufe0f \U000e0100 \U000e01ef \u180b \u180f"),
        ("blank", "\u115f \u1160 \u3164 \uffa0 \u2800"),
        ("control", "\x00 \x07 \x08 \x0b \x0c \x1b \x7f \x85 \x9b \u2028 \u2029 \ud800 \ufffe"),
        ("format", "\u00ad \ufff9 \ufffa \ufffb \U0001d173 \U0001bca0 \U00013430"),
    ],
)
def test_what_nobody_sees_is_taken_out_and_named(kind: str, characters: str) -> None:
    for each in characters.split(" "):
        cleaned = clean(f"one{each}two")
        assert cleaned.text.replace(" ", "") == "onetwo", hex(ord(each))
        assert [(found.kind, found.line, found.amount) for found in cleaned.hidden] == [(kind, 1, 1)]
        assert f"U+{ord(each):04X}" in cleaned.hidden[0].shown
        assert f"⟨U+{ord(each):04X}" in reveal(f"one{each}two")


@pytest.mark.parametrize(
    "text",
    [
        "家族 👨‍👩‍👧‍👦 の絵",
        "👩🏽‍💻 ❤️‍🔥 🏳️‍🌈 🙂‍↔️ 👁️‍🗨️",
        "☺︎ ☺️ 1️⃣ #️⃣ ©️",
        "می‌شود، نامه‌ای",
        "क्‍ष র‍্য ශ්‍රී",
        "葛\U000e0100城 辻\U000e0101 芦\ufe00",
        "ᠠ\u180b",
        "全角　空白\u00a0and a no-break space",
        "é e\u0301 ﷺ \u0600\u06dd",
        "line\r\nline\n\ttab\r\n",
        "a < b && c > d, x[1]: y, List<String>, <https://example.com>",
    ],
)
def test_what_a_script_an_emoji_or_a_line_needs_stays(text: str) -> None:
    assert clean(text) == (text, (), {})
    assert reveal(text) == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("葛\U000e0100\U000e0101城", "葛\U000e0100城"),  # one selector, not a run of them
        ("葛\U000e0151", "葛"),  # a letter of hidden text, no form of an ideograph
        ("x\ufe0f😀\ufe0f\ufe0f", "x😀\ufe0f"),
        ("1\ufe0f2", "12"),
        ("می\u200c\u200cشود", "میشود"),
        ("می\u200bشود", "میشود"),
        ("abc\u200ddef", "abcdef"),
        ("😀\u200d", "😀"),
        ("葛\u200b\U000e0100", "葛"),
        ("x\ufe0f\u200d😀", "x😀"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07", "red "),
        ("one\rtwo\r\n", "one\ntwo\r\n"),
        ("\ufeff# Title", "# Title"),
    ],
)
def test_only_where_it_means_something(text: str, kept: str) -> None:
    assert clean(text).text == kept
    assert clean_plain(text).text == kept


def test_smuggled_ascii_is_read_out_to_the_person() -> None:
    cleaned = clean(f"Fix it.{TAGS}")
    assert cleaned.text == "Fix it."
    assert "“obey me”" in cleaned.hidden[0].shown
    assert "“obey me”" in reveal(f"Fix it.{TAGS}")
    assert cleaned.counts == {HiddenKind.TAG: 7}


# --- comments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <!-- x --> b", "a  b"),
        ("a <!-- x\ny --> b", "a  b"),
        ("<!-- x\n\ny -->\nb", "\nb"),
        ("<!-- x", ""),
        ("a <!-- x\n\nb\n", "a "),
        ("a <!--> b <!---> c", "a  b  c"),
        ("<!-- a -- b --!> c --> d", " d"),
        ("<!-------- x -------->\nb", "\nb"),
        ("<!-- x\ny -->\nUse `<!-- seen -->`.", "\nUse `<!-- seen -->`."),
        ("a <? x ?> b <!DOCTYPE x> c <![CDATA[ x ]]> d", "a  b  c  d"),
        ("<?\nx\n?>\nb", "\nb"),
        ("- a\n  <!-- x\n  y -->\n- b", "- a\n  \n- b"),
        ("> <!-- x\n> y -->\n> b", "> \n> b"),
        ("```html <!-- x -->\ncode\n```", "```html \ncode\n```"),
        ("a &lt;!-- b --&gt; c <b>d</b>", "a &lt;!-- b --&gt; c <b>d</b>"),
        ("if a <!b and c", "if a <!b and c"),
    ],
)
def test_a_comment_is_not_given_to_the_agent(text: str, kept: str) -> None:
    cleaned = clean(text)
    assert cleaned.text == kept
    assert {hidden.kind for hidden in cleaned.hidden} <= {HiddenKind.COMMENT}
    assert bool(cleaned.hidden) == (kept != text)


@pytest.mark.parametrize(
    "text",
    [
        "```\n<!-- seen -->\n```\n",
        "~~~ html\n<!-- seen\n~~~\n",
        "````\n```\n<!-- seen -->\n```\n````\n",
        "- a\n\n  ```html\n  <!-- seen -->\n\n  ```\n- b",
        "Put `<!-- seen -->` there, or ``<!-- `seen` -->``.",
        "See [it](http://a.b), <b>then</b> `<!-- seen -->`.\nAnd `<!-- more -->`.",
        "```\n<div hidden>seen</div>\n[//]: # (seen)\n```",
        "```\nnever closed <!-- seen",
    ],
)
def test_code_that_everybody_sees_stays(text: str) -> None:
    assert clean(text) == (text, (), {})


@pytest.mark.parametrize(
    "text",
    [
        "<div>\n```\n<!-- HID -->\n```\n",
        "- a\n  ```\n<!-- HID -->\n  ```\n",
        "<pre>\n\n```\n<!-- HID -->\n```\n</pre>",
        "a ` b `<!-- HID -->` c",
        "a ` b\nc `<!-- HID -->` d ` e",
        "- a `\n- <!-- HID --> `",
        '<a title="`"> <!-- HID --> `',
        "[a](x`y) <!-- HID --> `z",
        "| a ` | <!-- HID --> ` |\n|---|---|\n",
        "http://a.b/`c <!-- HID --> `",
        "\\` <!-- HID --> `",
        "<!-- x --> `<!-- HID -->`",
        "a <!-- > ` --> <!-- HID --> `",
        "a <!-- b\n\n```\nc -->\n```\n<!-- HID -->\n",
        "<div>\n<!-- a\n\nb -->\n\nHID",
        "> <!-- a\nb -->\nHID",
        "    ```\n    <!-- HID -->\n",
        "<!-- a --\u200b> HID -->",
        "``` `\n<!-- HID -->\n",
        "```\n````x\n```\n<!-- HID -->",
        "~~~\n```\n~~~\n<!-- HID -->\n```\n",
        "para\n<foo>\n```\n\n```\n<!-- HID -->\n",
        "a <!-- b\n<!---><![CDATA[ HID ",
        "a <!X \n<!-- b\n<b>HID",
        "<?<b>\n<!-- a\n?>HID -->",
        "</pre>- \n<script>\n\n\n_<![CDATA[ HID ",
        "a<!-- b<!---><![CDATA[ HID -->",
        "    a<!X \n[x]: <> 'HID\n'",
        "\n\t<script>\n</pre>\n```\n<!-- HID",
        "http://a.b/<!X \n><![CDATA[ HID ",
        "\\<![CDATA[ a <!-- b]]>HID\n-->",
        "> |<!X \n>[x]: # (HID)?>",
        ">~~~[x]\n[x]: # (HID)",
        "> ```\n> [x]\n> ```\n\n[x]: # (HID)",
        "- ```\n\n  [x]\n\n  ```\n\n[x]: # (HID)",
        "-     [x]\n***\n[x]: # (HID)",
        '[//]: # "HID\n\t>\n<a title="',
        "[y]: /HID\nhttp://a.b/<!X [y]: /z\n]]>",
    ],
)
def test_what_only_pretends_to_be_code_is_found(text: str) -> None:
    cleaned = clean(text)
    assert "HID" not in cleaned.text
    assert cleaned.hidden


# --- definitions and elements ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\n\n[//]: # (hidden)\n", "a\n\n\n"),
        ("[comment]: <> (hidden\nin two lines)\n", "\n"),
        ("[x]: #\n  'hidden'\nseen", "\nseen"),
        ("> [x]: /hidden\n> seen", "> \n> seen"),
        ("[a]: # ([b])\n[b]: # (hidden)", "\n"),
        ("[x]\n\n[x]: /one\n[x]: /hidden", "[x]\n\n[x]: /one\n"),
        ("`[x]`\n\n[x]: /hidden", "`[x]`\n\n"),
        ("[x][no such]\n\n[x]: /hidden", "[x][no such]\n\n"),
        ("[^1]: hidden\ntoo\n\n    and this\n\nseen", "\n\nseen"),
    ],
)
def test_a_definition_that_nothing_uses_is_a_comment(text: str, kept: str) -> None:
    cleaned = clean(text)
    assert cleaned.text == kept
    assert {hidden.kind for hidden in cleaned.hidden} == {HiddenKind.DEFINITION}


@pytest.mark.parametrize(
    "text",
    [
        "See [the docs] and `code`.\n\n[The  Docs]: https://example.com 'Title'\n",
        "See [this][ref] and [that][].\n\n[ref]: <https://example.com>\n[that]: /x\n",
        "- item [x]\n\n[x]: /y\n",
        "As said[^1].\n\n[^1]: A note.\n",
        "[Note]: this is a sentence.\n",
        "value[0]: 3\n",
    ],
)
def test_links_footnotes_and_sentences_stay(text: str) -> None:
    assert clean(text).text == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <span hidden>x</span> b", "a  b"),
        ("<div style='color: red; display : none'>x</div> b", " b"),
        ('<p STYLE="visibility:hidden">x</p> b', " b"),
        ('<p style="font-size:0px">x</p> b', " b"),
        ('<p style="opacity:0.0">x</p> b', " b"),
        ('<p style="display&#58;none">x</p> b', " b"),
        ('<p style="d\\69splay:none">x</p> b', " b"),
        ('<p style="dis/**/play:none">x</p> b', " b"),
        ('<p title=">" hidden>x</p> b', " b"),
        ("<img alt='x' hidden> b", " b"),
        ("<div hidden>x <b>y</b></div> b", ""),  # where its end is not plain to see, all is taken
        ("<div hidden>x\n\n    </div>\n\nb", ""),
        ("<div hidden> `</div>` b", ""),
    ],
)
def test_an_element_that_says_it_is_hidden_is_taken_out(text: str, kept: str) -> None:
    assert clean(text).text == kept
    assert kinds(text) == ["element"]


@pytest.mark.parametrize(
    "text",
    [
        '<p style="opacity:0.5; font-size:10px; color:red">seen</p>',
        "<details><summary>More</summary>folded</details>",
        "![a picture](x.png 'a title') <img src='x.png' alt='y'>",
        "Change the <title> of the page; use <hidden>.",
    ],
)
def test_what_is_in_the_file_for_all_to_see_stays(text: str) -> None:
    assert clean(text).text == text


# --- what is told ----------------------------------------------------------------------------------------------------


def test_everything_hidden_is_told_with_kind_line_and_text() -> None:
    text = "# T\n\na\u200b\u200bb <!-- one\n\ntwo\u202e -->\n\n[//]: # (x)\n" + "\u200b" * 3
    assert clean(text).hidden == (
        (HiddenKind.ZERO_WIDTH, 3, "U+200B×2", 2),
        (HiddenKind.COMMENT, 3, "<!-- one\n\ntwo⟨U+202E⟩ -->", 1),
        (HiddenKind.DEFINITION, 7, "[//]: # (x)", 1),
        (HiddenKind.ZERO_WIDTH, 8, "U+200B×3", 3),
    )
    assert clean(text).counts == {HiddenKind.ZERO_WIDTH: 5, HiddenKind.COMMENT: 1, HiddenKind.DEFINITION: 1}
    shown = "# T\n\na⟨U+200B×2⟩b ⟨<!-- one\n\ntwo⟨U+202E⟩ -->⟩\n\n⟨[//]: # (x)⟩\n⟨U+200B×3⟩"
    assert reveal(text) == shown
    assert tally([clean(text), clean("a<!-- -->")]) == {"comment": 2, "definition": 1, "zero_width": 5}
    assert list(tally([clean(text)])) == ["comment", "definition", "zero_width"]


def test_very_much_is_told_shortly_and_counted_whole() -> None:
    cleaned = clean("a\u200b" * 1000 + f"<!-- {'x' * 1000} -->")
    assert len(cleaned.hidden) == 200
    assert cleaned.counts == {HiddenKind.ZERO_WIDTH: 1000, HiddenKind.COMMENT: 1}
    assert len(clean(f"<!-- {'x' * 1000} -->").hidden[0].shown) < 400


def test_a_plain_text_has_no_comments() -> None:
    text = "expected <!-- a --> got\u202e <!-- b"
    assert clean_plain(text).text == "expected <!-- a --> got <!-- b"
    assert reveal_plain(text) == "expected <!-- a --> got⟨U+202E⟩ <!-- b"


def test_what_is_left_never_becomes_hidden_by_what_is_gone() -> None:
    assert clean("a <!\u200b-- b -->").text == "a < !-- b -->"
    assert clean("a <<!-- x -->!-- b -->").text == "a < !-- b -->"
    assert clean("a\n\n[x]\u200b: b").text == "a\n\n[x] : b"


# --- properties ------------------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"], exclude_characters="<"))
HOSTILE_PIECES = (
    *(
        "<!--",
        "-->",
        "`",
        "```",
        "\n",
        "\n\n",
        "a",
        " ",
        "    ",
        "> ",
        "- ",
        "[x]",
        "[x]: #",
        "(y)",
        "<",
        ">",
        "!",
        "--",
    ),
    *("<div>", "\u200b", "\u200d", "\u202e", "😀", "\ufe0f", "葛", "\U000e0100", "\r", "\x1b[", "می", "]:", "?", "~~~"),
    *("<p hidden>", "\U000e0041", "\u3164", "\\", "<?", "\r\n", "[^1]: "),
)
HOSTILE = st.lists(st.sampled_from(HOSTILE_PIECES), max_size=24).map("".join)


@given(st.text() | HOSTILE)
@settings(max_examples=200)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    once = clean(text)
    assert clean(once.text) == (once.text, (), {})
    assert clean_plain(clean_plain(text).text).hidden == ()
    assert bool(once.hidden) == (once.text != text)


@given(WORDS.filter(lambda text: "]:" not in text))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert clean(text) == (text, (), {})


@given(st.text() | HOSTILE | st.text(st.characters(categories=["Cf", "Cc", "Cs"])))
@settings(max_examples=200)
def test_nothing_invisible_is_ever_left(text: str) -> None:
    for left in (clean(text).text, clean_plain(text).text):
        assert list(find_invisible(left)) == []
        odd = [each for each in left.replace("\r\n", "\n") if unicodedata.category(each) in ("Cc", "Cf", "Cs")]
        # Besides line feeds, tabs and joiners only signs that are seen, such as the Arabic ones around numbers.
        assert re.fullmatch(
            r"[\n\t\u200c\u200d\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd]*", "".join(odd)
        )
        assert "<!--" not in re.sub(r"```.*|~~~.*|`.*?`", "", clean(text).text, flags=re.DOTALL)
    assert list(find_invisible(reveal(text))) == []
    assert list(find_invisible(reveal_plain(text))) == []


# Pieces of which everything is made that a page may take for code, comments or definitions; § is a word to look for.
PIECES = [
    *("```", "~~~", "````", "`", "``", "\n", "\n", "\n\n", "\n```\n", "\n~~~\n", "    ", "  ", " ", "\t", "\r", "\r\n"),
    *("<!-- § -->", "<!-- §", "§ -->", "-->", "<!-->", "<!--->", "--!>", "\n<!-- §\n", "\n§ -->\n", "§", "a "),
    *("- ", "> ", "1. ", "# ", "---", "\n***\n", "*", "|", "$", "\\", '"', "'", ")", "&lt;", "http://a.b/"),
    *("<div>", "</div>", "<pre>", "</pre>", "<b>", "<foo>", "<script>", "<details>\n", '<a title="', "<img src='", ">"),
    *("[x]", "[x]: # (§)", "[y]: /§\n", "[x]: <> '§\n", "§')", '[//]: # "§\n', "[a](b"),
    *("<?", "?>", "<!X ", "<![CDATA[ § ", "]]>", "<span hidden>§</span>"),
]


@given(st.lists(st.sampled_from(PIECES), min_size=2, max_size=14).map("".join))
@settings(max_examples=200)
def test_nothing_is_given_that_a_real_renderer_hides(pieces: str) -> None:
    count = iter(range(1000))
    text = re.sub("§", lambda _: f"Q{next(count)}Q", pieces)
    given_words = set(re.findall(r"Q\d+Q", clean(text).text))
    assert given_words <= set(re.findall(r"Q\d+Q", seen_on_page(text)))


# --- speed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", ["<!--", "\u200b", "`"])
def test_a_megabyte_is_no_trouble(piece: str) -> None:
    begin = time.process_time()
    clean(piece * (1_000_000 // len(piece)))
    assert time.process_time() - begin < 5


LONG = (
    *(
        "a\u200b",
        "` ",
        "<a ",
        '[a]: b "\n',
        "a <? ",
        "a <!X ",
        "[x",
        "[x]:",
        "`a`<b>",
        "a://",
        "\r",
        "<div>\n",
        "- <!-- a\n",
    ),
    *(
        "```\n",
        "~~~ <!--\n",
        "a<b hidden>x",
        '<a b="',
        "<a b='\"",
        "[^a]: b\n\n    ",
        "<!-- -->\n",
        "][",
        "> ",
        "[a](b",
    ),
    *("a <!-- --->", "<b/", "`a", "\x1b]", "a\ufe0f", "> <!--\n", "www.", "1. ", "<a b=c ", "[//]: # (x)\n"),
)


@pytest.mark.parametrize("piece", LONG)
def test_any_text_costs_no_more_than_its_length(piece: str) -> None:
    """Eight times the length may cost eight times as much, not sixty-four times; the margin is for noise."""

    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        begin = time.process_time()
        clean(text)
        return time.process_time() - begin

    short = min(seconds(4_000) for _ in range(3))
    # The least of several times is what the work costs; the rest is what others do on the machine.
    assert any(seconds(32_000) < max(short * 24, 0.5) for _ in range(3))


def test_the_renderer_shows_what_a_careless_reader_gives_away() -> None:
    """The comparison above can fail: whoever takes everything with a fence for code is caught."""
    for text in ("<div>\n```\n<!-- HID -->\n```\n", "- a\n  ```\n<!-- HID -->\n", "a ` b `<!-- HID -->` c"):
        assert "HID" not in seen_on_page(text)
    assert "HID" in seen_on_page("```\n<!-- HID -->\n```\n`<!-- HID -->`")
