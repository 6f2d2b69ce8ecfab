"""The server's own rules (SEC, API): who may call it, who is signed in, what its events say."""
