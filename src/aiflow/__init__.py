"""aiflow: works through a backlog of coding requests, one at a time, and says why."""

__version__ = "0.2.0"

SETTINGS_FILE = "aiflow.toml"
