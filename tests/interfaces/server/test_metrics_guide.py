"""The guide "Metrics" (API): it has every figure that `/metrics` shows with its labels, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from aiflow.api.routes.metrics import FAMILIES
from server_yard import Served, served

GUIDE = (Path(__file__).parents[3] / "docs/guides/metrics.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(aiflow_\w+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)


def shown(up: Served) -> str:
    answer = up.call("GET", "/metrics", up.bearer)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return answer.body.decode()


@pytest.mark.spec("API-2")
def test_the_guide_has_every_figure_and_no_other(repository: Path) -> None:
    with served(repository) as up:
        types = re.findall(r"^# TYPE (\w+) (\w+)$", shown(up), re.MULTILINE)
    assert dict(types) == {name: kind for name, kind, _ in ROW.findall(GUIDE)}
    assert set(re.findall(r"aiflow_\w+", GUIDE)) == {name for name, _ in types}, "those of the queries, too"


@pytest.mark.spec("API-2")
def test_the_guide_has_the_labels_of_every_figure() -> None:
    labels = {f"{name}_total" if each.is_counter else name: each.labels for name, each in FAMILIES.items()}
    assert labels == {name: tuple(re.findall(r"`(\w+)`", told)) for name, _, told in ROW.findall(GUIDE)}


@pytest.mark.spec("API-2")
def test_labels_that_are_shown_are_those_of_the_table(repository: Path) -> None:
    (repository / "requests").mkdir()
    (repository / "requests/RQ-1.md").write_text("status: ready\n\n# One\n")
    with served(repository) as up:
        text = shown(up)
    assert 'aiflow_requests{status="ready"} 1.0' in text
    assert "aiflow_steps_total 0.0" in text
    for name, labels in re.findall(r"^(aiflow_\w+)\{(.*)\} ", text, re.MULTILINE):
        assert tuple(re.findall(r'(\w+)="', labels)) == FAMILIES[name.removesuffix("_total")].labels


@pytest.mark.parametrize("block", re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE))
def test_what_prometheus_is_given_is_yaml(block: str) -> None:
    assert isinstance(yaml.safe_load(block), dict)
