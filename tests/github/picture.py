"""A picture of an issue's life, as GitHub would show it: from its label to its end, in both languages.

The program runs for real against the hub; the comments are drawn as they were posted.
"""

from __future__ import annotations

import contextlib
import html
import io
import re
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from aiflow.cli.main import run as run_program  # noqa: E402
from aiflow.cli.session import use_texts  # noqa: E402
from aiflow.messages import Texts  # noqa: E402
from browser import chromium  # noqa: E402
from e2e.bench import Bench, git  # noqa: E402
from e2e.scripted_agents import plan_of  # noqa: E402
from github.place import IssuePlace, issue_place  # noqa: E402

STORY = {
    "en": (
        "Show dates in the list",
        "The list shows no dates. Please add them.",
        "/retry ISO dates, such as 2026-11-18.",
    ),
    "ja": (
        "一覧に日付を表示する",
        "一覧に日付がありません。追加してください。",
        "/retry ISO 形式（2026-11-18）でお願いします。",
    ),
}
QUESTION = {
    "en": ("Which format should the dates have?", ["ISO (2026-11-18)", "Long (18 November 2026)"]),
    "ja": ("日付はどの形式にしますか?", ["ISO 形式（2026-11-18）", "長い形式（2026年11月18日）"]),
}
STEPS = {
    "en": ("Show a date in each row", "Test it with days of one digit"),
    "ja": ("各行に日付を表示する", "1桁の日でもテストする"),
}
WIDTH = 820
STYLE = """
body { margin: 0; background: #fff; font: 14px/1.5 system-ui, "Noto Sans", "Noto Sans CJK JP", sans-serif; color: #1f2328; }
main { width: 760px; padding: 24px 30px; } h1 { font-size: 24px; font-weight: 400; margin: 0 0 4px; } h1 span { color: #59636e; }
.open { display: inline-block; border-radius: 2em; background: #8250df; color: #fff; padding: 4px 12px; margin: 4px 0 20px; font-weight: 500; }
article { border: 1px solid #d1d9e0; border-radius: 6px; margin: 16px 0; } article header { background: #f6f8fa; color: #59636e; padding: 8px 16px; border-bottom: 1px solid #d1d9e0; border-radius: 6px 6px 0 0; }
article header b { color: #1f2328; } .ours header { background: #ddf4ff; border-color: #54aeff66; } .ours { border-color: #54aeff66; }
.body { padding: 4px 16px 12px; } .body p { margin: 10px 0; } blockquote { margin: 10px 0; padding: 0 1em; color: #59636e; border-left: .25em solid #d1d9e0; }
pre { background: #f6f8fa; border-radius: 6px; padding: 12px; overflow: auto; font-size: 12px; } code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 85%; background: #818b981f; padding: .2em .4em; border-radius: 6px; } pre code { background: none; padding: 0; }
table { border-collapse: collapse; } td, th { border: 1px solid #d1d9e0; padding: 5px 12px; } details { margin: 8px 0; color: #59636e; } sub { color: #59636e; vertical-align: baseline; font-size: 11px; }
.event { color: #59636e; margin: 10px 0 10px 18px; border-left: 2px solid #d1d9e0; padding-left: 16px; } .label { border-radius: 2em; padding: 2px 9px; font-size: 12px; font-weight: 500; color: #fff; }
.q { background: #1d76db; } .r { background: #0e8a16; } .b { background: #d93f0b; } .y { background: #fbca04; color: #1f2328; } .o { background: #818b98; }
"""
COLOURS = {"agent:queued": "q", "agent:running": "r", "agent:blocked": "b", "agent:retry": "y"}


def take_all(folder: Path) -> list[Path]:
    """Take the pictures and return where they are."""
    found = chromium.find()
    if found is None:
        sys.exit(chromium.MISSING)
    folder.mkdir(parents=True, exist_ok=True)
    taken = []
    for language in STORY:
        page = drawn(language)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=found.path, args=[*found.args])
            window = browser.new_page(viewport={"width": WIDTH, "height": 400}, device_scale_factor=1)
            window.set_content(page)
            path = folder / f"issue.{language}.png"
            window.screenshot(path=path, full_page=True)
            browser.close()
        taken.append(path)
    return taken


def drawn(language: str) -> str:
    """Live an issue's life, and draw it."""
    with life(language) as place:
        return page_of(place)


@contextlib.contextmanager
def life(language: str) -> Iterator[IssuePlace]:
    """Let an issue be queued, run, stop with a question, wait for a day, be answered, run again, and be closed."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        root = Path(name, "demo")
        root.mkdir()
        git(root, "init", "-qb", "main")
        bench = Bench(root, Path(name))
        bench.aiflow.environ["AIFLOW_LANG"] = language
        patch.setattr("platform.node", lambda: "laptop")
        with issue_place(bench, patch) as place:
            live(place, language)
            yield place
        bench.close()


def live(place: IssuePlace, language: str) -> None:
    title, body, answer = STORY[language]
    question, choices = QUESTION[language]
    agent = place.bench.agent
    plan = plan_of("S01", "S02")
    for step, words in zip(plan["steps"], STEPS[language], strict=True):
        step["title"] = words
    agent.plans_exactly(plan)
    number = place.opened(title, body, "P1", "agent:queued")
    asked = {"status": "needs_input", "question": question, "choices": choices}
    agent.does("implementer", f"answer({asked!r})", step="S01")
    call(place, "issues", "sync", language=language)
    call(place, "run", f"GH-{number}", language=language)
    place.later(number, 25)
    call(place, "issues", "sync", language=language)
    place.works()
    place.later(number, 0.5)
    place.hub.comment(number, answer, "maya")
    call(place, "issues", "sync", language=language)
    place.later(number, 0.1)
    call(place, "run", f"GH-{number}", language=language)
    place.later(number, 0.2)
    place.hub.close(number, "maya")
    call(place, "issues", "sync", language=language)


def call(place: IssuePlace, *argv: str, language: str) -> None:
    use_texts(Texts(language))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run_program(["-C", str(place.bench.root), *argv])


def page_of(place: IssuePlace) -> str:
    row = place.hub.rows[1]
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    happened: list[tuple[datetime, int, str]] = []
    for event in row.events:
        who = html.escape(event.actor.login if event.actor else "")
        label = event.label.name if event.label else ""
        shown = f'<span class="label {COLOURS.get(label, "o")}">{label}</span>' if label else ""
        words = {"labeled": "added", "unlabeled": "removed", "closed": "closed this as completed"}[event.kind]
        happened.append((event.at, event.id, f'<p class="event"><b>{who}</b> {words} {shown}</p>'))
    for comment in row.comments:
        who = html.escape(comment.author.login if comment.author else "")
        kind = "ours" if "<!-- aiflow:" in comment.body else ""
        body = parser.render(re.sub(r"<!--.*?-->", "", comment.body))
        told = (
            f'<article class="{kind}"><header><b>{who}</b> commented</header><div class="body">{body}</div></article>'
        )
        happened.append((comment.created_at, comment.id, told))
    told = "".join(each for _, _, each in sorted(happened))
    author = html.escape(row.author.login if row.author else "")
    first = (
        f'<article><header><b>{author}</b> opened</header><div class="body">{parser.render(row.body)}</div></article>'
    )
    state = "Open" if row.is_open else "Closed"
    return (
        f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style><main><h1>{html.escape(row.title)} <span>#1</span></h1>'
        f'<span class="open">{state}</span>{first}{told}</main>'
    )


if __name__ == "__main__":
    for made in take_all(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures")):
        sys.stdout.write(f"{made}\n")
