"""Which agent programs are installed and logged in."""
