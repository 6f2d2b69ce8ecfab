"""Agents, one module per kind (AGT-1)."""
