"""Issues as requests (ISS): reading them into the mirror, tending them, and looking after the repository."""
