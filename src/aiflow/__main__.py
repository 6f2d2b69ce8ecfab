"""`python -m aiflow`."""

from aiflow.cli.entry import main

main()
