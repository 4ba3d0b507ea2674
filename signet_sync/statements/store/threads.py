"""Reads what a thread left open: its next step and its blocker. Imports nothing heavy."""

from __future__ import annotations

_NEWEST = (
    "(select {wanted} from statements s where s.agent_id = {head}.agent_id and s.thread_id = {head}.thread_id"
    " and s.kind = '{kind}' and s.newest = 1 and s.status = 'open' order by s.at_us desc, s.line, s.id limit 1)"
)


def next_of(head: str, wanted: str = "s.text") -> str:
    """Returns an expression for the first of a thread's newest next steps."""
    return _NEWEST.format(wanted=wanted, head=head, kind="next")


def blocker_of(head: str, wanted: str = "s.text") -> str:
    """Returns an expression for the first of a thread's newest blockers."""
    return _NEWEST.format(wanted=wanted, head=head, kind="blocker")
