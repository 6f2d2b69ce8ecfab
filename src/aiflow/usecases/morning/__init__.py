"""The story of the night: what was done, what waits and what it unblocks, and what will run before it begins."""
