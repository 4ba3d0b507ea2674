"""The turns of a running session out of the transcript that its harness writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from signet_sync.agent import capture
from signet_sync.agent.live import refuse_removed
from signet_sync.agent.workspace import Workspace
from signet_sync.contracts.sanitizer import sanitize_transcript_v2
from signet_sync.contracts.timestamps import iso
from signet_sync.contracts.tokens import token_of
from signet_sync.harness.markdown import render
from signet_sync.harness.records import Conversation, Entry
from signet_sync.host.stores import Source
from signet_sync.index import live
from signet_sync.index.live import LiveTurn


def follow(workspace: Workspace, source: Source, agent_id: str) -> int:
    """Makes the live turns of a running session those of its transcript that no segment holds; gives how many are new.

    The session's key is its id, as when it is captured; where somebody streams it, nothing is done. Raises
    `HarnessError`, `UsageError` (`removed-session`), `DatabaseError`.
    """
    database = workspace.database
    conversation = capture.read(source)
    session_id = conversation.session_id
    if conversation.parent is not None or not session_id:
        return 0
    token = token_of(agent_id, session_id)
    segments = live.segments(database, agent_id, token, session_id)
    turns = list(_turns(conversation, capture.unwritten(workspace, conversation, agent_id)))
    with database.transaction():
        refuse_removed(workspace, agent_id, session_id, session_id)
        if segments != live.segments(database, agent_id, token, session_id):
            return 0  # it was ended meanwhile: what is new since then is for the next look
        if live.streamed(database, agent_id, session_id):
            return 0
        return live.mirror(database, agent_id, session_id, session_id, turns)


def _turns(conversation: Conversation, wanted: Iterable[Entry]) -> Iterator[LiveTurn]:
    """Words of the user and the assistant, numbered from 1 in the whole conversation: a segment moves no number."""
    fresh = {id(entry) for entry in wanted}
    number = 0
    for entry in conversation.entries:
        if entry.kind not in ("user", "assistant") or not entry.text.strip():
            continue
        number += 1
        if id(entry) in fresh:
            # Role and time stand beside the words.
            _, _, words = render((entry,)).partition("\n\n")
            yield LiveTurn(number, entry.kind, sanitize_transcript_v2(words), iso(entry.at))
