"""External programs: run under a guard, looked up, and ended with everything they started (AGT-5)."""
