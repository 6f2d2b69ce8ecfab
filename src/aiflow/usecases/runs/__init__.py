"""Runs: started, advanced, resumed, recovered, accepted."""
