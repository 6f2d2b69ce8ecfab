"""What finished runs leave in git and on disk."""
