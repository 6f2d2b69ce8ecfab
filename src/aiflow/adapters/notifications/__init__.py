"""Notifying a person who is not there: by their own command, or by the services that apprise knows."""

# The addresses for apprise, as the program that sends by it gets them.
URLS_VARIABLE = "AIFLOW_NOTE_URLS"
