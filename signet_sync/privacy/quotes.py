"""Finds what the agent's other sessions hold of removed ones, turns and passages, and redacts it.

Each turn stands in one session, the one that was captured first. If that is a fork, a removal of the original reaches
the fork's files: the transcript loses whole exchanges; summaries and sentences go, and what the fork itself came to is
told again from the rest of its transcript.

A passage is a run of words that the session contains, no earlier session does, and only a few later ones repeat: common
text is a template, and earlier text is not the session's own. Code and tool output are excluded, since two sessions
that read the same file contain the same text. A session that still runs is searched, too, but not redacted: its
transcript is its harness's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest

from signet_sync.capture import capture
from signet_sync.capture import store as capture_store
from signet_sync.capture.harnesses.markdown import render
from signet_sync.capture.transcripts import TranscriptSource
from signet_sync.errors import HarnessError, UsageError
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.ids import token_of
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import iso
from signet_sync.memories.store import session_texts
from signet_sync.memories.store.session_texts import SessionText
from signet_sync.privacy import redact as privacy_redact
from signet_sync.privacy.remove import SessionRemoval
from signet_sync.sessions.copied_history import exchanges_of
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.turns import turns_in
from signet_sync.storage.database.batches import Scope
from signet_sync.sync.workspace import Workspace
from signet_sync.text.chunking import turns
from signet_sync.text.phrase_search import Sieve
from signet_sync.text.redaction import REMOVED, Cleaning
from signet_sync.text.sanitizer import sanitize_transcript_v2

LEAST_WORDS, LEAST = 8, 40
RUNNING = "running session "
_LATEST = 1 << 62  # microseconds
_MOST = 4_000  # passages to search for; of a longer text no more, evenly spaced
_TEMPLATE = 5  # sessions; text that more of them repeat belongs to none

# Characters that JSON escapes end a passage, since our tools' output may be quoted as JSON.
_PLAIN = re.compile(r'[^"\\<>&\x00-\x1f\x7f]+')
_WORD = re.compile(r"\S+")
_LETTERS = re.compile(r"[^\W\d_]{2}")
# To the fence that closes it, or to the end.
_CODE = re.compile(r"^ {0,6}(`{3,}|~{3,}).*?(?:^ {0,6}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_LEAD = re.compile(r"[\s>#*+-]*(?:\d{1,3}[.)]\s+)?")
_CALL = re.compile(r"- (?:sub-agent )?(`+) ?(.+?) ?\1(?: · \d{4}-[\dT:.-]{1,30}Z)?(?:(?: ·)? (.*))?")
_SURE_WORDS = 12
_OPENS = re.compile(r"(?:^|\n)[\s>#*+-]*(?:\d{1,3}[.)])?\s*(?:\*\*)?$|[.!?:]['\")*]*\s+$")
_CLOSES = re.compile(r"[.!?]['\")*`]*$")
_GAP = re.compile(r"[\s*>#`.,;:!?()-]*")

_Prompt = tuple[str, str]  # its time and first line


# ── turns of copied history ──


def _find_copies(workspace: Workspace, removals: Sequence[SessionRemoval]) -> dict[str, frozenset[_Prompt]]:
    """Returns the artifacts of the same agents' other sessions that hold turns of the removed ones, by their prompts.

    Transcripts are the last: after a crash they say that their session holds such turns.
    """
    database, found = workspace.database, dict[str, frozenset[_Prompt]]()
    scopes = [one.scope for one in removals if one.sessions]
    for removal in removals:
        prompts = frozenset(_prompts(_own_texts(workspace, removal)))
        others = session_texts.artifact_texts_of_others(database, removal.agent_id, scopes) if prompts else ()
        holders = {other.session for other in others if next(_spans(other.text, prompts), None)}
        of_holders = [(removal.agent_id, token, (session_id,)) for token, session_id in sorted(holders)]
        for one in session_texts.artifact_texts(database, of_holders):
            found[one.path] = found.get(one.path, frozenset()) | prompts
    return {path: found[path] for path in sorted(found, key=lambda path: (_is_transcript(path), path))}


def _is_transcript(path: str) -> bool:
    name = artifact_name(path.rpartition("/")[2])
    return name is not None and name.kind == "transcript"


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


def _prompts(texts: Iterable[str]) -> Iterator[_Prompt]:
    for text in texts:
        yield from ((one.at, one.line) for one in exchanges_of(turns_in(text)) if one.at)


def _spans(text: str, prompts: frozenset[_Prompt]) -> Iterator[tuple[int, int]]:
    """Yields where exchanges with these prompts begin and end in a transcript's text."""
    times = {at for at, _ in prompts}
    begun = list(turns(text))
    if not any(turn.at is not None and iso(turn.at) in times for turn in begun):
        return
    pieces = [text[turn.start : end] for turn, end in zip_longest(begun, (turn.start for turn in begun[1:]))]
    starts = [
        turn.start for turn, piece in zip(begun, pieces, strict=True) if next(exchanges_of(turns_in(piece)), None)
    ]
    for start, end in zip_longest(starts, starts[1:], fillvalue=len(text)):
        if not prompts.isdisjoint(_prompts([text[start:end]])):
            yield start, end


def _redact_copied(path: str, prompts: frozenset[_Prompt]) -> Cleaning:
    """Returns what redacts an artifact of a session that holds turns with these prompts."""
    body = partial(_redact_exchanges, prompts) if _is_transcript(path) else _redact_whole
    return Cleaning(body, str, sentence=_redact_whole)


def _redact_exchanges(prompts: frozenset[_Prompt], text: str) -> str:
    kept: list[str] = []
    at = 0
    for start, end in _spans(text, prompts):
        kept += text[at : text.find("\n", start)], f"\n\n{REMOVED}\n\n"
        at = end
    return "".join(kept) + text[at:]


def _redact_whole(text: str) -> str:
    return REMOVED if text.strip() else text


# ── passages ──


@dataclass(slots=True)
class Quotes:
    """Passages of removed sessions found elsewhere, by path; redacts a text of them.

    `passages` has where each stands: in which of `texts`, and at which character. `copies` has the prompts of turns.
    """

    texts: list[str]
    passages: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    found: dict[str, set[bytes]] = field(default_factory=dict)
    copies: Mapping[str, frozenset[_Prompt]] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[str, ...]:
        """Returns the artifacts that quote, or hold turns of the sessions."""
        return tuple(sorted({*self.copies, *(one for one in self.found if not one.startswith(RUNNING))}))

    @property
    def live_sessions(self) -> tuple[str, ...]:
        """Returns the sessions that quote and still run, as `running session ID`."""
        return tuple(sorted(one for one in self.found if one.startswith(RUNNING)))

    @property
    def places(self) -> tuple[str, ...]:
        """Returns everything that quotes."""
        return self.paths + self.live_sessions

    @property
    def cleaning(self) -> Cleaning:
        """Returns the cleaning that redacts the passages."""
        return Cleaning(self.redact_passages, self.redact_passages)

    def redact_passages(self, text: str) -> str:
        """Replaces every passage in a text by a mark, extended as far as the text matches the session."""
        spans = []
        for passage in set().union(*self.found.values()):
            words = passage.decode("utf-8", "replace")
            at = text.find(words)
            while at >= 0:
                span = self._stretch(text, at, at + len(words), passage)
                spans.append(span)
                at = text.find(words, max(span[1], at + 1))
        parts: list[str] = []
        end = 0
        for start, stop in sorted(spans):
            # One mark for passages that overlap, or have only punctuation and list marks between them.
            if not parts or not (start <= end or _GAP.fullmatch(text, end, start)):
                parts += text[end:start], REMOVED
            end = max(end, stop)
        return "".join(parts) + text[end:]

    def _stretch(self, text: str, start: int, end: int, passage: bytes) -> tuple[int, int]:
        """Returns the span of a passage, extended by whole words as far as both texts are equal."""
        first, last, _ = self._common(text, start, passage)
        while 0 < first < start and text[first - 1 : first + 1].isalnum():
            first += 1
        while end < last < len(text) and text[last - 1 : last + 1].isalnum():
            last -= 1
        kept = text[first:last]
        return first + len(kept) - len(kept.lstrip()), last - len(kept) + len(kept.rstrip())

    def is_quote(self, text: str, passage: bytes) -> bool:
        """Returns whether a text repeats more than a common phrase: twelve words, or a whole sentence."""
        words = passage.decode("utf-8", "replace")
        start = text.find(words)
        if start < 0:
            return False
        first, last, back = self._common(text, start, passage)
        if len(_WORD.findall(text, first, last)) >= _SURE_WORDS:
            return True
        own = self.texts[self.passages[passage][0]]
        begins, ends = first + back, last + back
        before, inside, after = own[:begins], own[begins:ends].rstrip(), own[ends:]
        opened = not before.strip() or _OPENS.search(before[-20:]) is not None
        return opened and (
            _CLOSES.search(inside) is not None or not after.strip(" \t") or after.lstrip(" \t")[0] in "\n.!?"
        )

    def _common(self, text: str, start: int, passage: bytes) -> tuple[int, int, int]:
        """Returns where the equal text around a passage begins and ends, and its offset to the session's own text."""
        number, at = self.passages[passage]
        own, end = self.texts[number], start + len(passage.decode("utf-8", "replace"))
        back = at - start
        to = end + back
        first, last = start, end
        while first > 0 and at > 0 and text[first - 1] == own[at - 1] and text[first - 1] != "]":
            first, at = first - 1, at - 1
        while last < len(text) and to < len(own) and text[last] == own[to] and text[last] != "[":
            last, to = last + 1, to + 1
        return first, last, back


def find_quotes(workspace: Workspace, removals: Sequence[SessionRemoval]) -> Quotes:
    """Finds the artifacts of the same agents' other sessions that quote the removed sessions.

    Reads every other text of the agents once.
    """
    quotes = Quotes([], copies=_find_copies(workspace, removals))
    scopes = [one.scope for one in removals if one.sessions]
    for agent_id in sorted({scope[0] for scope in scopes}):
        of_agent = [scope for scope in scopes if scope[0] == agent_id]
        own = list(session_texts.artifact_texts(workspace.database, of_agent))
        for part in own:
            quotes.texts.append(part.text)
            for start, end in _passages(part):
                quotes.passages.setdefault(_bytes(part.text[start:end]), (len(quotes.texts) - 1, start))
        evenly = slice(None, None, len(quotes.passages) // (_MOST + 1) + 1)
        quotes.passages = dict([*quotes.passages.items()][evenly])
        if own:
            _search(workspace, agent_id, scopes, min(part.captured_us for part in own), quotes)
    return quotes


def redact(workspace: Workspace, quotes: Quotes, why: str, now_us: int) -> None:
    """Redacts the passages in the artifacts that quote.

    Raises `UsageError` if one of them cannot be written, or a running session quotes: then nothing may be removed yet.
    """
    if quotes.live_sessions:
        shown = ", ".join(map(display, quotes.live_sessions))
        raise UsageError(
            f"what a session says while it runs cannot be redacted, and is captured when it ends: {shown}",
            hint="end it, then remove again; or remove with --quoting keep",
            code="quoted",
            details={"quoted_in": list(quotes.places)},
        )
    copied = [
        privacy_redact.redact(workspace, [path], why, now_us, cleaning=_redact_copied(path, prompts))
        for path, prompts in quotes.copies.items()
    ]
    done = privacy_redact.redact(workspace, quotes.paths, why, now_us, cleaning=quotes.cleaning)
    left = [one for each in (*copied, done) for one in each.left]
    if left:
        one = left[0]
        raise UsageError(
            f"it quotes the session and cannot be redacted: {one.message}",
            path=one.path,
            hint=f"{one.hint}; then remove again, or with --quoting keep".lstrip("; "),
            code="quoted",
            details={"quoted_in": [one.path for one in left]},
        )


def _texts(workspace: Workspace, agent_id: str, scopes: Sequence[Scope]) -> Iterator[SessionText]:
    """Yields the texts of an agent's other sessions, at last what running ones have said so far."""
    yield from session_texts.artifact_texts_of_others(workspace.database, agent_id, scopes)
    for key, session_id, *_ in live.sessions(workspace.database, agent_id):
        session = token_of(agent_id, key), session_id or key
        # Turns with only a key may be of any session of it.
        if any(session[1] in ids or (session[0] == token and not (ids and session_id)) for _, token, ids in scopes):
            continue
        turns = live.transcript(workspace.database, agent_id, key, session_id)
        # It is captured later than anything that is there, whatever it said first.
        yield SessionText(f"{RUNNING}{session[1]}", session, _LATEST, "\n\n".join(turn.content for turn in turns))


def _search(workspace: Workspace, agent_id: str, scopes: Sequence[Scope], since_us: int, quotes: Quotes) -> None:
    sieve = Sieve(quotes.passages)
    places: dict[bytes, set[tuple[str, str]]] = {}
    common: set[bytes] = set()
    hits: dict[str, set[bytes]] = {}
    for other in _texts(workspace, agent_id, scopes):
        caught = sieve.find(_bytes(other.text))
        if other.captured_us < since_us:
            common |= caught
            continue
        for passage in caught:
            if quotes.is_quote(other.text, passage):
                places.setdefault(passage, set()).add(other.session)
                hits.setdefault(other.path, set()).add(passage)
    common |= {passage for passage, sessions in places.items() if len(sessions) > _TEMPLATE}
    for path, caught in hits.items():
        if caught - common:
            quotes.found.setdefault(path, set()).update(caught - common)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


# ── what a session said in words ──


def _passages(part: SessionText) -> Iterator[tuple[int, int]]:
    """Yields runs of at least eight words that together cover the prose."""
    for start, end in _prose(part):
        for piece in _PLAIN.finditer(part.text, start, end):
            words = list(_WORD.finditer(part.text, *piece.span()))
            for first in range(0, len(words), LEAST_WORDS):
                # The last run reaches back, so that none is shorter.
                begin = max(0, min(first, len(words) - LEAST_WORDS))
                stop = min(begin + LEAST_WORDS, len(words))
                while stop < len(words) and words[stop - 1].end() - words[begin].start() < LEAST:
                    stop += 1
                span = words[begin].start(), words[stop - 1].end()
                if stop - begin >= LEAST_WORDS and span[1] - span[0] >= LEAST and _is_prose(words[begin:stop]):
                    yield span


def _is_prose(words: Collection[re.Match[str]]) -> bool:
    return sum(1 for word in words if _LETTERS.search(word[0])) * 4 >= len(words) * 3


def _prose(part: SessionText) -> Iterator[tuple[int, int]]:
    """Yields the lines of prose: no code, no tool calls and output, no remarks of the program that wrote them."""
    at, in_item = 0, False
    for line in _CODE.sub(lambda code: " " * len(code[0]), part.text).split("\n"):
        start, at = at, at + len(line) + 1
        bare = line.strip()
        in_item = bool(_CALL.fullmatch(line)) or (in_item and line.startswith("  "))
        if in_item or (bare.startswith("*") and bare.endswith("*") and len(bare) > 2):
            continue
        lead = _LEAD.match(line)
        yield start + (lead.end() if lead else 0), start + len(line)
