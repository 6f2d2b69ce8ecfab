"""One call of an agent program, whatever its kind."""
