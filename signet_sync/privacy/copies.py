"""Finds the turns of removed sessions that a fork of them holds, and redacts these with what was summed up of them.

Each turn stands in one session, the one that was captured first. If that is the fork, a removal of the original reaches
the fork's files: the transcript loses whole exchanges, the summary each line that only these say. A summary by a model
mixes all that was said, and goes whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from signet_sync.capture import capture
from signet_sync.capture import store as capture_store
from signet_sync.capture.harnesses.markdown import render
from signet_sync.capture.stores.transcripts import TranscriptSource
from signet_sync.errors import HarnessError
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.lazy_pattern import late
from signet_sync.memories.store import session_texts
from signet_sync.privacy.remove import SessionRemoval
from signet_sync.sessions.copied_history import exchanges_of
from signet_sync.sessions.live_turns import turns_in
from signet_sync.storage.database.removal import Scope
from signet_sync.sync.workspace import Workspace
from signet_sync.text.chunking import turns
from signet_sync.text.digest_mark import end_of
from signet_sync.text.redaction import REMOVED, Cleaning
from signet_sync.text.sanitizer import sanitize_transcript_v2

_Prompt = tuple[str, str]  # its time and first line
_TIME = late(r"^## User · (\S+)$", re.MULTILINE)
_WORD = late(r"\w+")
_RUN = 5  # words that only the removed turns say


@dataclass(frozen=True, slots=True)
class HeldCopy:
    """A session that holds turns of removed ones: its artifacts, the turns' prompts, and all that it says besides."""

    paths: tuple[str, ...]
    prompts: frozenset[_Prompt]
    copied: str
    rest: str

    def cleaning(self, path: str) -> Cleaning:
        """Returns the cleaning of one of its artifacts."""
        name = artifact_name(path.rpartition("/")[2])
        transcript = name is not None and name.kind == "transcript"
        return Cleaning(self._without_exchanges if transcript else self._without_lines, self._line)

    def _without_exchanges(self, text: str) -> str:
        kept: list[str] = []
        at = 0
        for start, end in _spans(text, self.prompts):
            head = text.find("\n", start)
            kept += text[at:head], f"\n\n{REMOVED}\n\n"
            at = end
        return "".join(kept) + text[at:]

    def _without_lines(self, text: str) -> str:
        made = end_of(text)
        if not made:
            return REMOVED
        title, line, lines = text.partition("\n")
        head, made_by = f"# {self._line(title.removeprefix('# '))}{line}", made - len(title) - len(line)
        return head + lines[:made_by] + "\n".join(map(self._item, lines[made_by:].split("\n")))

    def _item(self, line: str) -> str:
        mark, said = line[:2], line[2:]
        return f"{mark}{self._line(said)}" if mark == "- " else line

    def _line(self, text: str) -> str:
        """Replaces a line that says what only the removed turns say."""
        words = _words(text)
        runs = [words[at : at + _RUN] for at in range(max(1, len(words) - _RUN + 1))] if words else []
        said = (f" {' '.join(run)} " for run in runs)
        return REMOVED if any(run in self.copied and run not in self.rest for run in said) else text


def find(workspace: Workspace, removals: Sequence[SessionRemoval]) -> list[HeldCopy]:
    """Returns the sessions of the same agents that hold turns of the removed ones."""
    found: list[HeldCopy] = []
    scopes = [one.scope for one in removals if one.sessions]
    for removal in removals:
        prompts = frozenset(_prompts(list(_own_texts(workspace, removal))))
        if prompts:
            found += _holding(workspace, removal.agent_id, scopes, prompts)
    return found


def _own_texts(workspace: Workspace, removal: SessionRemoval) -> Iterator[str]:
    """Yields the sessions' texts: of their artifacts, and of the transcripts from which they were captured."""
    yield from session_texts.texts(workspace.database, removal.scope)
    for harness, path, session_id in capture_store.sources(
        workspace.database, removal.agent_id, removal.session_ids, removal.session_token
    ):
        try:
            conversation = capture.read(TranscriptSource(harness, os.path.expanduser(path), session_id, 0, 0))
        except HarnessError:
            continue  # it is gone: what was captured of it is known
        if conversation.session_id in removal.session_ids:
            yield sanitize_transcript_v2(render(conversation.entries))


def _prompts(texts: Sequence[str]) -> Iterator[_Prompt]:
    for text in texts:
        yield from ((one.at, one.line) for one in exchanges_of(turns_in(text)) if one.at)


def _holding(
    workspace: Workspace, agent_id: str, scopes: Sequence[Scope], prompts: frozenset[_Prompt]
) -> Iterator[HeldCopy]:
    times = {at for at, _ in prompts}
    holders: set[tuple[str, str]] = set()
    for other in session_texts.artifact_texts_of_others(workspace.database, agent_id, scopes):
        if not times.isdisjoint(_TIME.findall(other.text)) and next(_spans(other.text, prompts), None):
            holders.add(other.session)
    for token, session_id in sorted(holders):
        texts = list(session_texts.artifact_texts(workspace.database, [(agent_id, token, (session_id,))]))
        whole = [one.text for one in texts if _TIME.search(one.text)]
        copied = [text[start:end] for text in whole for start, end in _spans(text, prompts)]
        rest = [text[start:end] for text in whole for start, end in _spans(text, prompts, others=True)]
        flat = (f" {' '.join(_words(' '.join(part)))} " for part in (copied, rest))
        yield HeldCopy(tuple(sorted({one.path for one in texts})), prompts, *flat)


def _spans(text: str, prompts: frozenset[_Prompt], *, others: bool = False) -> Iterator[tuple[int, int]]:
    """Yields where exchanges with these prompts, or all `others`, begin and end in a transcript's text."""
    starts = [turn.start for turn in turns(text) if _TIME.match(text, turn.start)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
        held = not prompts.isdisjoint(_prompts([text[start:end]]))
        if held is not others:
            yield start, end


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
