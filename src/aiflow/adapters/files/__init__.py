"""Files: written atomically, read with checks, in the right folders."""
