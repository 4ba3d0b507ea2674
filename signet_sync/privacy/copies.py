"""Finds the turns of removed sessions that a fork of them holds, and redacts these with what was summed up of them.

Each turn stands in one session, the one that was captured first. If that is the fork, a removal of the original reaches
the fork's files: the transcript loses whole exchanges, the summary each line that only these say. A summary by a model
mixes all that was said, and goes whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from signet_sync.capture import capture
from signet_sync.capture import store as capture_store
from signet_sync.capture.harnesses.markdown import render
from signet_sync.capture.transcripts import TranscriptSource
from signet_sync.errors import HarnessError
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import iso
from signet_sync.memories.store import session_texts
from signet_sync.privacy.remove import SessionRemoval
from signet_sync.sessions.copied_history import exchanges_of
from signet_sync.sessions.live.turns import turns_in
from signet_sync.storage.database.batches import Scope
from signet_sync.sync.workspace import Workspace
from signet_sync.text.chunking import turns
from signet_sync.text.digest_mark import end_of
from signet_sync.text.redaction import REMOVED, Cleaning
from signet_sync.text.sanitizer import sanitize_transcript_v2

_Prompt = tuple[str, str]  # its time and first line
_WORD = late(r"\w+")
_RUN = 5  # words that only the removed turns say


@dataclass(frozen=True, slots=True)
class HeldCopy:
    """A session that holds turns of removed ones.

    `artifacts` are its artifacts, each with whether it mixes what these and others said, `prompts` those of the turns,
    `copied` and `rest` the words of these turns and of the session's own.
    """

    artifacts: Mapping[str, bool]
    prompts: frozenset[_Prompt]
    copied: str
    rest: str

    def cleaning(self, path: str) -> Cleaning:
        """Returns the cleaning of one of its artifacts."""
        name = artifact_name(path.rpartition("/")[2])
        if name is not None and name.kind == "transcript":
            return Cleaning(self._redact_exchanges, self._line)
        return Cleaning((lambda _: REMOVED) if self.artifacts[path] else self._redact_lines, self._line)

    def _redact_exchanges(self, text: str) -> str:
        kept: list[str] = []
        at = 0
        for start, end in _spans(text, self.prompts):
            kept += text[at : text.find("\n", start)], f"\n\n{REMOVED}\n\n"
            at = end
        return "".join(kept) + text[at:]

    def _redact_lines(self, text: str) -> str:
        made_by = end_of(text)
        title = text.partition("\n")[0]
        head = f"# {self._line(title.removeprefix('# '))}{text[len(title) : made_by]}" if made_by else ""
        return head + "\n".join(map(self._item, text[made_by:].split("\n")))

    def _item(self, line: str) -> str:
        return f"- {self._line(line[2:])}" if line.startswith("- ") else line

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
    holders = {
        other.session
        for other in session_texts.artifact_texts_of_others(workspace.database, agent_id, scopes)
        if next(_spans(other.text, prompts), None)
    }
    for token, session_id in sorted(holders):
        texts = list(session_texts.artifact_texts(workspace.database, [(agent_id, token, (session_id,))]))
        copied, rest = [], []
        held: set[int] = set()
        for one in texts:
            copied += [one.text[start:end] for start, end in _spans(one.text, prompts)]
            rest += [one.text[start:end] for start, end in _spans(one.text, prompts, others=True)]
            held |= {one.captured_us} if next(_spans(one.text, prompts), None) else set()
        artifacts = dict.fromkeys((one.path for one in texts), False)
        for one in texts:
            name = artifact_name(one.path.rpartition("/")[2])
            kind = name.kind if name is not None else ""
            mixed = kind == "summary" and one.captured_us in held and "\n" in one.text and not end_of(one.text)
            artifacts[one.path] |= mixed or kind == "compaction"
        words = (f" {' '.join(_words(' '.join(part)))} " for part in (copied, rest))
        yield HeldCopy(artifacts, prompts, *words)


def _spans(text: str, prompts: frozenset[_Prompt], *, others: bool = False) -> Iterator[tuple[int, int]]:
    """Yields where exchanges with these prompts, or all `others`, begin and end in a transcript's text."""
    times = {at for at, _ in prompts}
    begun = list(turns(text))
    if not others and not any(turn.at is not None and iso(turn.at) in times for turn in begun):
        return
    pieces = [text[turn.start : end] for turn, end in zip_longest(begun, (turn.start for turn in begun[1:]))]
    starts = [
        turn.start for turn, piece in zip(begun, pieces, strict=True) if next(exchanges_of(turns_in(piece)), None)
    ]
    for start, end in zip_longest(starts, starts[1:], fillvalue=len(text)):
        held = not prompts.isdisjoint(_prompts([text[start:end]]))
        if held is not others:
            yield start, end


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
