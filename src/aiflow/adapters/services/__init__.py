"""Services of the user: systemd's user manager, and launchd."""
