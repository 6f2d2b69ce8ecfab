"""The program as it is where npm fetched nothing at set-up: `python without_htmx.py up --json …`."""

from __future__ import annotations

import sys

from aiflow.cli.main import main
from aiflow.web import static_files

if __name__ == "__main__":
    static_files.HTMX = "vendor/nothing.js"
    main(sys.argv[1:])
