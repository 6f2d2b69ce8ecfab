"""The caches of package managers and compilers for agents (AGT-4): a folder of the project's own, writable to them.

Their usual places are in the user's home, where a confined agent cannot write, and most of these tools do nothing
without a cache to write. What an agent leaves in this one reaches no tool of the user's: set-up and tests of runs
have the user's own caches.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.adapters.agents.call.command import Launch, Surroundings

# The variable that names each tool's place, the folder there, and what starts an agent from it.
_PLACES = (
    ("npm_config_cache", "npm", ("npx", "npm")),
    ("UV_CACHE_DIR", "uv", ("uvx", "uv")),
    ("PIP_CACHE_DIR", "pip", ()),
    ("GOCACHE", "go-build", ()),
    ("GOMODCACHE", "go-mod", ()),
    ("CARGO_HOME", "cargo", ()),
)


def cache_variables(launch: Launch, around: Surroundings) -> dict[str, str]:
    """Say where tools keep their caches during a call; what `agent.env` hands on stays as the user set it.

    A program that is itself started from a cache, by `npx` or `uvx`, is looked for where the user has it.
    """
    if not around.caches_folder:
        return {}
    starter = os.path.basename(launch.argv[0]) if launch.argv else ""
    return {
        name: os.path.join(around.caches_folder, folder)
        for name, folder, starters in _PLACES
        if starter not in starters and not (name in launch.env_names and around.environ.get(name))
    }


def made_caches(around: Surroundings) -> tuple[str, ...]:
    """Return the folder of all caches, made if it is missing; none where that cannot be."""
    if not around.caches_folder:
        return ()
    try:
        os.makedirs(around.caches_folder, mode=0o700, exist_ok=True)
    except OSError:
        return ()
    return (around.caches_folder,)
