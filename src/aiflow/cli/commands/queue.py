"""`aiflow queue`."""

from __future__ import annotations

from aiflow.cli.options import Subcommands

command = Subcommands("queue", ("add", "list", "show", "cancel", "counts", "runners", "namespaces", "store"))
