"""The parts that not every installation has: what adds one fits how aiflow was installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from aiflow.adapters import extras
from aiflow.adapters.extras import Origin

ROOT = str(Path(__file__).parents[2])


@pytest.mark.parametrize(
    ("left_by_installer", "installed", "command"),
    [
        ("uv-receipt.toml", Origin(), 'uv tool install "aiflow-local[acp,github]"'),
        ("uv-receipt.toml", Origin("/my clone"), 'uv tool install "/my clone[acp,github]"'),
        ("pipx_metadata.json", Origin(), 'pipx install --force "aiflow-local[acp,github]"'),
        ("pyvenv.cfg", Origin(), 'pip install "aiflow-local[acp]"'),
        ("pyvenv.cfg", Origin("/clone", is_editable=True), '{prefix}/bin/pip install -e "/clone[acp]"'),
    ],
)
@pytest.mark.spec("DOC-1")
def test_a_part_is_added_as_aiflow_was_installed_and_no_other_is_lost(
    left_by_installer: str, installed: Origin, command: str, tmp_path: Path
) -> None:
    (tmp_path / left_by_installer).touch()
    told = extras.extra_install("acp", str(tmp_path), installed, has=lambda extra: extra == "github")
    assert told == command.format(prefix=tmp_path)


def test_this_aiflow_knows_its_clone_and_its_parts() -> None:
    assert extras.origin() == Origin(ROOT, is_editable=True)
    assert all(extras.has_extra(extra) for extra in extras.LIBRARIES)
