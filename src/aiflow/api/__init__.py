"""The HTTP API (SPEC §11): parse → one use case → render. Only `aiflow up` imports it."""
