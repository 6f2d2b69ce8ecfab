"""Texts of agents, tools and people as a page draws them: Markdown, diffs, logs. Pure; nothing is trusted."""
