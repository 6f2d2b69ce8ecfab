"""Request files, `requests/<id>.md` (REQ-1 to REQ-5, 7, 8): read, patched byte for byte, written atomically."""
