"""Connects all packages: the registry of stages, the opening of a workspace, the agent with its timers and its socket.

Promises that an idle agent costs next to nothing and that its end loses nothing. Owns the heartbeat and the socket in
the state folder. It knows every feature, and none knows it.
"""
