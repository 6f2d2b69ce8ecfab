"""Any program that speaks the Agent Client Protocol, as an agent (AGT-1).

`driver` says how a call is started: not the agent itself but `client`, a small program of ours under the guard, which
starts the agent and holds the `conversation` with it. What happens comes back as events that `events` reads. Only the
client imports the protocol's library, which is an extra.
"""
