"""Everything in memory: the ports' simplest adapters, for tests and for trying a decision out."""
