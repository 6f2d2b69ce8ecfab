"""The rules of agents: what they are asked, what they may answer, what they use."""
