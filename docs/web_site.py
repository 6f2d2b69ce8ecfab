"""The documentation as a site: English at `/`, Japanese at `/ja/` (`make site`).

The pages are those of the repository. They are laid out for the generator with their links turned to where the pages
are on the site, one build for each language, so that each has its own search; then every link and anchor of the result
is followed, and its search is asked what people ask. The index pages (`docs/README.md`, `docs/ja/README.md`) are the
navigation.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import yaml

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^(`{3,})(\w*)\n.*?^\1$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s]+)\)")
PICTURE = re.compile(r"\]\([./]*pictures/([^)]+)\)")
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
SECTION = re.compile(r"^\*\*(.+?)\*\*")
ENTRY = re.compile(r"\[([^\]]+)\]\(([^)#\s]+\.md)\)")


class Edition(NamedTuple):
    """The site in one language: where its pages are in the repository, and where the site has them."""

    language: str
    first: str
    folder: str
    home: str
    others: tuple[str, ...] = ()

    def place_of(self, path: str) -> str | None:
        """Return where this edition has a page, if it does."""
        if path == self.first:
            return "index.md"
        if path in self.others:
            return f"project/{path.lower()}"
        inside = path.removeprefix(f"{self.folder}/")
        if inside == path or not (ROOT / path).is_file() or (self.language == "en" and inside.startswith("ja/")):
            return None
        return "contents.md" if inside == "README.md" else inside if inside.endswith(".md") else None


EDITIONS = (
    Edition("en", "README.md", "docs", "", ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE")),
    Edition("ja", "README.ja.md", "docs/ja", "ja/"),
)

# What somebody may look for, and the page that has to be among the first that the search finds.
QUESTIONS = {
    "en": {
        "overnight": "guides/overnight.html",
        "rate limit": "guides/costs-and-limits.html",
        "uninstall": "install.html",
        "phone": "guides/from-your-phone.html",
        "security": "security.html",
        "STORE_NOT_INSTALLED": "reference/reason-codes.html",
        "queue.store": "guides/local-store.html",
    },
    "ja": {
        "受け入れ": "troubleshooting.html",
        "差し戻す": "reference/reason-codes.html",
        "一晩": "guides/overnight.html",
        "朝": "guides/overnight.html",
        "実行されない": "troubleshooting.html",
        "質問に答える": "guides/answer-a-question.html",
        "アンインストール": "install.html",
        "STORE_NOT_INSTALLED": "reference/reason-codes.html",
    },
}
FIRST_FOUND = 3


def lay_out(edition: Edition, folder: Path) -> None:
    """Write an edition's pages into a folder, as the generator takes them."""
    paths = [edition.first, *edition.others]
    paths += [str(path.relative_to(ROOT)) for path in sorted((ROOT / edition.folder).rglob("*"))]
    pictures: set[str] = set()
    for path in paths:
        place = edition.place_of(path)
        if place is not None and (ROOT / path).is_file():
            text = page_of(path, edition)
            pictures |= set(PICTURE.findall(text))
            target = folder / page_name(place)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    (folder / "pictures").mkdir(exist_ok=True)
    for name in pictures:
        shutil.copyfile(ROOT / "docs/pictures" / name, folder / "pictures" / name)


def page_name(place: str) -> str:
    """Return the name of a page on the site, in Markdown."""
    return place if place.endswith(".md") else f"{place}.md"


def page_of(path: str, edition: Edition) -> str:
    """Return a page with its links turned and with the anchors that its headings have on GitHub."""
    text = (ROOT / path).read_text("utf-8")
    if path == "LICENSE":
        return f"# Licence\n\n```text\n{text}```\n"
    parts: list[str] = []
    end, seen = 0, Counter[str]()
    for fence in FENCE.finditer(text):
        parts += [_prose(text[end : fence.start()], path, edition, seen), _shown(fence)]
        end = fence.end()
    return "".join([*parts, _prose(text[end:], path, edition, seen)])


def _shown(fence: re.Match[str]) -> str:
    """Return a block of code; a diagram as its text, for what draws it would have to come from another host."""
    return fence[0].replace("mermaid", "text", 1) if fence[2] == "mermaid" else fence[0]


def _prose(text: str, path: str, edition: Edition, seen: Counter[str]) -> str:
    text = LINK.sub(lambda link: f"{link[1]}({address(link[2], path, edition)})", text)
    return HEADING.sub(lambda heading: f"{heading[0]} {{#{_anchor(heading[2], seen)}}}", text)


def _anchor(heading: str, seen: Counter[str]) -> str:
    """Return the anchor that GitHub gives a heading; the second of a name is numbered."""
    name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}-{seen[name] - 1}"


def address(link: str, path: str, edition: Edition) -> str:
    """Return where a link of a page leads to on the site: a page of this edition, or one of the other."""
    if link.startswith(("https://", "http://", "#", "mailto:")):
        return link
    target, _, anchor = link.partition("#")
    found = os.path.normpath(os.path.join(os.path.dirname(path), target))
    here = page_name(edition.place_of(path) or "")
    after = f"#{anchor}" if anchor else ""
    if found.startswith("docs/pictures/"):
        return os.path.relpath(found.removeprefix("docs/"), os.path.dirname(here) or ".")
    place = edition.place_of(found)
    if place is not None:
        return os.path.relpath(page_name(place), os.path.dirname(here) or ".") + after
    for other in EDITIONS:
        place = other.place_of(found)
        if place is not None:
            built = f"{other.home}{page_name(place).removesuffix('.md')}.html"
            return os.path.relpath(built, os.path.dirname(f"{edition.home}{here}") or ".") + after
    raise LookupError(f"{path}: {link} leads to nothing that the site has")


def navigation(edition: Edition) -> list[Any]:
    """Return the navigation, from the index page: its sections, and the first link of each entry."""
    index = f"{edition.folder}/README.md"
    found: list[Any] = ["index.md", "contents.md"] if (ROOT / index).is_file() else ["index.md"]
    inside = found
    for line in (ROOT / index).read_text("utf-8").splitlines() if len(found) > 1 else ():
        if section := SECTION.match(line):
            inside = []
            found.append({section[1]: inside})
        elif line.startswith(("-", " ")):
            inside += [{title: to} for title, to in _entries(line, index, edition)]
    return found


def _entries(line: str, index: str, edition: Edition) -> Iterator[tuple[str, str]]:
    for title, link in ENTRY.findall(line)[: None if "decisions/" in line else 1]:
        place = address(link, index, edition)
        if place.endswith(".md"):
            yield title[0].upper() + title[1:], place


def build(edition: Edition, work: Path, site: Path) -> None:
    """Build one edition below the site's root."""
    pages = work / edition.language
    lay_out(edition, pages / "pages")
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    settings |= {"docs_dir": "pages", "site_dir": "site", "nav": navigation(edition)}
    settings["theme"]["language"] = edition.language
    settings["extra"] = {
        "generator": False,
        "alternate": [
            {"name": "English", "link": "index.html" if edition.language == "en" else "../index.html", "lang": "en"},
            {"name": "日本語", "link": "ja/index.html" if edition.language == "en" else "index.html", "lang": "ja"},
        ],
    }
    (pages / "mkdocs.yml").write_text(yaml.safe_dump(settings, allow_unicode=True, sort_keys=False), "utf-8")
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=pages, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    shutil.copytree(pages / "site", site / edition.home, dirs_exist_ok=True)


class Page(HTMLParser):
    """A built page: its anchors, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what a tag names."""
        named = dict(attrs)
        self.anchors |= {named.get("id") or "", named.get("name") or "" if tag == "a" else ""}
        if tag == "a" and named.get("href"):
            self.links.append(named["href"] or "")
        loaded = named.get("src") or (named.get("href") if tag == "link" else None)
        if loaded:
            self.loads.append(loaded)


def broken(site: Path) -> Iterator[str]:
    """Name every link, anchor and file of the site that is not there, and everything that another host would see."""
    pages = {path: Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    for path, page in sorted(pages.items()):
        name = path.relative_to(site)
        yield from (f"{name}: loads {each} from elsewhere" for each in page.loads if urlsplit(each).netloc)
        for link in {*page.links, *page.loads}:
            to = urlsplit(link)
            if to.scheme or to.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(to.path)).resolve() if to.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{name}: {link} does not exist"
            elif to.fragment and target in pages and unquote(to.fragment) not in pages[target].anchors:
                yield f"{name}: {link} has no such heading"


def unsearchable(site: Path, edition: Edition) -> Iterator[str]:
    """Name every page of an edition that its search does not know."""
    root = site / edition.home
    index = json.loads((root / "search.json").read_text("utf-8"))
    known = {item["location"].partition("#")[0] for item in index["items"]}
    for path in sorted(root.rglob("*.html")):
        name = str(path.relative_to(root))
        if name != "404.html" and name not in known and (edition.home or not name.startswith("ja/")):
            yield f"{edition.home}{name}: not found by the search"


def unanswered(site: Path, edition: Edition, questions: Mapping[str, str]) -> Iterator[str]:
    """Ask an edition's search with its own script, and name every question whose page is not among the first found."""
    command = ["node", str(ROOT / "docs/ask_search.js"), str(site / edition.home), *questions]
    asked = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if asked.returncode:
        raise SystemExit(asked.stderr)
    for (question, page), found in zip(questions.items(), json.loads(asked.stdout), strict=True):
        first = found[:FIRST_FOUND]
        if page not in [place.partition("#")[0] for place in first]:
            told = ", ".join(first) or "nothing"
            yield f"{edition.home}search: {question} does not lead to {page}, but to {told}"


def main() -> int:
    """Build the site into `build/site`, and say what is wrong with it."""
    work, site = ROOT / "build/site-pages", ROOT / "build/site"
    for folder in (work, site):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for edition in EDITIONS:
        build(edition, work, site)
    found = [*broken(site)]
    for edition in EDITIONS:
        found += [*unsearchable(site, edition), *unanswered(site, edition, QUESTIONS[edition.language])]
    print("\n".join(found) or f"{site.relative_to(ROOT)}/index.html")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
