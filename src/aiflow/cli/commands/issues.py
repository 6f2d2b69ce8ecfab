"""`aiflow issues`."""

from __future__ import annotations

from aiflow.cli.options import Subcommands

command = Subcommands("issues", ("sync", "watch", "show", "labels", "doctor"))
