"""The folders of runs, `runs/<request-id>/<run-id>/`, and auto-run's session."""
