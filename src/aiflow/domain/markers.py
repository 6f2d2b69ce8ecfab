"""The marks by which processes of a run are known (AGT-2, AGT-5): names of environment variables."""

from __future__ import annotations

# What an agent or a test command of a run carries, and everything it starts.
RUN_MARK = "AIFLOW_RUN_ID"
# The guard process itself, and git: they end by themselves soon after the runner and are waited for.
GUARD_MARK = "AIFLOW_GUARD_OF"
GIT_MARK = "AIFLOW_GIT_OF"
