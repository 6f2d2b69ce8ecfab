"""The routes of the API, one module a room; each route parses what was asked, asks one use case and renders."""
