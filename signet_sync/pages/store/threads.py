"""Selects what pages show of a thread: its newest session, and what it left open. Imports nothing heavy."""

from __future__ import annotations

from signet_sync.statements.store.threads import blocker_of, next_of

# The columns of a `ThreadView`, of a row `h` of `memory_thread_heads`. What an earlier session said has its handle.
_EARLIER = "iif(s.at_us < h.latest_us, s.id, '')"
THREAD = (
    "h.thread_id, h.project, h.session_key, h.harness, h.status, h.sessions, h.latest_us, h.sample,"
    f" {next_of('h')}, h.source_ref, {blocker_of('h')}, coalesce({next_of('h', _EARLIER)}, ''),"
    f" coalesce({blocker_of('h', _EARLIER)}, ''), h.node_id"
)
