"""GitHub issues as a source of requests (ISS): the client, the local mirror, and what is written to an issue."""
