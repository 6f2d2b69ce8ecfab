"""The runs' worktrees."""
