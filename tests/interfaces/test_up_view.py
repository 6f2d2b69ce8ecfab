"""What `aiflow up` shows on a terminal: a QR code that is right in every theme, and a browser only where it is seen."""

from __future__ import annotations

import re

import pytest

from aiflow.cli.terminal import qr_code
from aiflow.cli.terminal.browser import has_browser
from aiflow.cli.views.up import UpView
from aiflow.domain.server.guard import far_address, far_link
from aiflow.errors import SettingsError
from aiflow.messages import Texts
from aiflow.usecases.server.up_news import UpNews, UpNewsKind

pytestmark = pytest.mark.spec("API-1")
LINK = "http://127.0.0.1:4310/sign-in#code=ABCDE-FGHJK"


def test_a_qr_code_has_its_marks_a_quiet_zone_and_two_colours_that_no_theme_changes() -> None:
    lines = qr_code.qr_lines(LINK)
    rows = [[upper for upper, _ in line] for line in lines], [[lower for _, lower in line] for line in lines]
    whole = [row for pair in zip(*rows, strict=True) for row in pair]
    side = len(lines[0])
    assert all(len(line) == side for line in lines)
    assert not any(whole[0]) and not any(whole[1]), "the quiet zone"
    assert whole[2][2:9] == [True] * 7, "the mark in the corner"
    assert whole[3][2:9] == [True] + [False] * 5 + [True]
    painted = qr_code._painted(lines[1])
    assert set(re.findall(r"[34]8;5;(\d+)", painted)) <= {"16", "231"}
    assert painted.endswith("\x1b[0m")


def test_another_project_on_the_port_is_named_where_it_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    view = UpView(Texts("en"), as_json=False)
    view.show_port(4310, 4311, "/home/me/other")
    view.show_port(4310, 4311, None)
    assert capsys.readouterr().out.splitlines() == [
        "Port 4310 is used by another project (/home/me/other): using port 4311.",
        "Port 4310 is used by another project: using port 4311.",
    ]


def test_where_nobody_looks_there_is_no_qr_code(capsys: pytest.CaptureFixture[str]) -> None:
    qr_code.show_qr_code(LINK)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("environ", "platform", "is_terminal", "expected"),
    [
        ({"DISPLAY": ":0"}, "linux", True, True),
        ({"WAYLAND_DISPLAY": "w"}, "linux", True, True),
        ({}, "darwin", True, True),
        ({}, "linux", True, False),
        ({"DISPLAY": ":0"}, "linux", False, False),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "1"}, "linux", True, False),
        ({"SSH_TTY": "/dev/pts/1"}, "darwin", True, False),
        ({"DISPLAY": ":0", "CI": "true"}, "linux", True, False),
    ],
)
def test_a_browser_is_opened_only_where_it_is_seen(
    environ: dict[str, str], platform: str, *, is_terminal: bool, expected: bool
) -> None:
    assert has_browser(environ, platform, is_terminal=is_terminal) is expected


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ((), "http://127.0.0.1:4310"),
        (("laptop",), "http://laptop:4310"),
        (("laptop:80",), "http://laptop:80"),
        (("https://laptop.tail.ts.net/",), "https://laptop.tail.ts.net"),
    ],
)
def test_the_qr_code_leads_to_the_name_that_other_devices_know(hosts: tuple[str, ...], expected: str) -> None:
    assert far_address("http://127.0.0.1:4310", hosts, 4310) == expected


@pytest.mark.parametrize(
    ("far_url", "hosts", "expected"),
    [
        ("", (), None),
        ("", ("localhost:80",), None),
        ("", ("laptop",), "http://laptop:4310/sign-in#code=ABCDE-FGHJK"),
        ("https://l.example/", ("laptop",), "https://l.example/sign-in#code=ABCDE-FGHJK"),
    ],
)
def test_a_link_that_leads_no_phone_here_is_no_qr_code(
    far_url: str, hosts: tuple[str, ...], expected: str | None
) -> None:
    assert far_link(LINK, "http://127.0.0.1:4310", far_url, hosts) == expected


FACTS = {
    "request_id": "RQ-1",
    "run_id": "RUN-1",
    "pid": 7,
    "runs": 3,
    "done": 2,
    "seconds": "1",
    "said": "it broke",
    "pids": "7",
    "code": -9,
}
OF_NO_REQUEST = {**FACTS, "request_id": None, "run_id": None}


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("kind", UpNewsKind)
def test_everything_that_happens_has_words(kind: UpNewsKind, language: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = SettingsError(problems=[]) if kind in (UpNewsKind.TROUBLE, UpNewsKind.WORKER_REFUSED) else None
    for as_json in (False, True):
        for facts in (FACTS,) if kind is UpNewsKind.WAS_INTERRUPTED else (FACTS, OF_NO_REQUEST):
            for continues in (True, False):
                UpView(Texts(language), as_json=as_json).hear(UpNews(kind, {**facts, "continues": continues}, error))
        told = capsys.readouterr()
        assert (told.out == "") is as_json
        assert "{" not in told.out + told.err
        assert "None" not in told.out + told.err
