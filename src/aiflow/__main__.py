"""`python -m aiflow`."""

from aiflow.cli.main import main

main()
