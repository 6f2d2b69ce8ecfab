"""The server's own files: the user's token, the sessions of a checkout, and where its server is."""
