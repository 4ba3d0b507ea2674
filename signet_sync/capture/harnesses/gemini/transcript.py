"""Parses Gemini CLI's chats: a log of patches to a list of messages (older versions: one JSON document)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

from signet_sync.capture.harnesses.reader import LineReader
from signet_sync.capture.harnesses.records import UNNAMED, Conversation, TranscriptEntry, time_of
from signet_sync.capture.harnesses.texts import (
    IMAGE,
    call_line,
    cut_middle,
    drop_injected,
    items_of,
    join_paragraphs,
    mapping_of,
    one_line,
    text_of,
)
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.managed_block import CLOSING, OPENING

_NOTICES = ("info", "warning", "error")
_CONTEXT = ("<session_context>", "This is the Gemini CLI. We are setting up the context for our chat.")
_PROJECT = (
    late(r"\*\*Workspace Directories:\*\*\n[ \t]*- ([^\n]+)"),
    late(r"I'm currently working in the (?:directory: |following directories:\n[ \t]*- )([^\n]+)"),
)
_UNTRUSTED = late(r"<untrusted_context>\n?(.*?)\n?</untrusted_context>", re.DOTALL)
_OUTPUT_HEAD = late(r"\AOutput: |\nProcess Group PGID: \d+\s*\Z")
_FAILED = ("error", "cancelled")
# What Gemini CLI answers to the summary of a compression, in the model's name.
_THANKS = "Got it. Thanks for the additional context!"
_SNAPSHOT = late(r"\A<state_snapshot>\n?(.*?)\n?</state_snapshot>(?:\n\nResume the prior task[^\n]*)?\s*\Z", re.DOTALL)


def _one_document_a_line(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the lines; a document spread over many lines (the first is just `{`) becomes one line."""
    rest = iter(lines)
    first = next(rest, b"")
    if first.strip() == b"{":
        whole = b"".join(chain([first], (line if line.endswith(b"\n") else line + b"\n" for line in rest)))
        yield whole
        return
    yield from chain([first], rest)


@dataclass(slots=True)
class _GeminiCall:
    """One call of a tool, as far as it is known."""

    name: str
    line: str
    at: int
    result: str | None = None
    omitted: int = 0
    failed: bool = False
    ours: bool = False


@dataclass(slots=True)
class _Message:
    """One message, merged from all records with its id."""

    kind: str
    at: int
    text: str = ""
    calls: dict[str, _GeminiCall] = field(default_factory=dict)


class _GeminiReader(LineReader):
    """The messages by their ids; the file contains the session's id."""

    harness = "gemini"

    def __init__(self, file_name: str = "") -> None:
        super().__init__()
        self.messages: dict[str, _Message] = {}
        self.copies: dict[str, str] = {}  # ids that a compression gave to messages, "" for one that nobody wrote
        self.results: dict[str, tuple[str, int, bool]] = {}
        self.seen = 0

    @classmethod
    def read(cls, lines: Iterable[bytes], *, file_name: str = "") -> Conversation:
        return super().read(_one_document_a_line(lines))

    def take(self, record: Mapping[str, Any]) -> None:
        if "$set" in record:
            self._patch(mapping_of(record["$set"]))
        elif "$rewindTo" in record:
            self._rewind(text_of(record["$rewindTo"]))
        elif "type" in record:
            self._message(record)
        elif "sessionId" in record:
            self._patch(record)
        else:
            self.count_unknown(next(iter(record), ""))

    def _patch(self, values: Mapping[str, Any]) -> None:
        """Applies metadata and perhaps a snapshot of messages, which adds and updates but removes none."""
        self.session = self.session or text_of(values.get("sessionId"))
        self.title = one_line(text_of(values.get("summary"))) or self.title
        self.begins = max(self.begins, time_of(values.get("startTime")))
        self.project = self.project or next((d for d in items_of(values.get("directories")) if text_of(d)), "")
        if values.get("kind") == "subagent":
            self.parent = text_of(values.get("parentSessionId")) or UNNAMED
        messages = [*map(mapping_of, items_of(values.get("messages")))]
        self._compressed(messages)
        for message in messages:
            self._message(message)

    def _compressed(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Recognises the snapshot after a compression: summary, thanks for it, and what was kept, all with new ids."""
        texts = [join_paragraphs(texts_of_parts(message.get("content"))) for message in messages]
        place = next((n for n, (_, following) in enumerate(pairwise(texts)) if following == _THANKS), None)
        if place is None or messages[place].get("type") != "user":
            return
        summary, thanks, *kept = (text_of(message.get("id")) for message in messages[place:])
        if not (summary and thanks) or summary in self.messages:
            return
        earlier = [(key, _shape(one.kind, one.text, one.calls)) for key, one in self.messages.items()]
        self.messages[summary] = _Message("compaction", time_of(messages[place].get("timestamp")))
        self.copies[thanks] = ""
        for key, message in reversed([*zip(kept, messages[place + 2 :], strict=True)]):
            if not key or key in self.messages:
                continue
            calls = (mapping_of(mapping_of(one).get("functionCall")) for one in items_of(message.get("content")))
            ids = [text_of(call.get("id")) for call in calls if call]
            shape = _shape(text_of(message.get("type")), self._text(message), ids)
            before = next((n for n in reversed(range(len(earlier))) if earlier[n][1] == shape), None)
            if before is not None:
                self.copies[key] = earlier[before][0]
                del earlier[before:]

    def _rewind(self, target: str) -> None:
        target = self.copies.get(target, target)
        while target in self.messages:
            self.messages.popitem()

    def _message(self, record: Mapping[str, Any]) -> None:
        kind, at = text_of(record.get("type")), time_of(record.get("timestamp"))
        if kind not in ("user", "gemini", *_NOTICES):
            self.count_unknown(kind)
            return
        # A message without an id cannot be updated; its position serves as its key.
        self.seen += 1
        key = text_of(record.get("id")) or f"#{self.seen}"
        key = self.copies.get(key, key)
        if not key:
            return
        # The first time counts: snapshots made at a resume carry the time of the resume.
        message = self.messages.setdefault(key, _Message(kind, at))
        for part in map(mapping_of, items_of(record.get("content"))):
            self._part(part, message, at)
        for call in map(mapping_of, items_of(record.get("toolCalls"))):
            self._call(call, message, at)
        text = self._text(record)
        message.text = text or message.text

    def _text(self, record: Mapping[str, Any]) -> str:
        # What was displayed is what the user typed; the content also contains the files it mentions.
        texts = texts_of_parts(record.get("displayContent")) or texts_of_parts(record.get("content"))
        own = []
        for text in texts:
            if text.lstrip().startswith(_CONTEXT):
                found = next((match for pattern in _PROJECT if (match := pattern.search(text))), None)
                self.project = self.project or (found[1].strip() if found else "")
            else:
                own.append(drop_injected(text).strip("\r\n"))
        return join_paragraphs(own)

    def _part(self, part: Mapping[str, Any], message: _Message, at: int) -> None:
        if call := mapping_of(part.get("functionCall")):
            self._call(call, message, at)
        elif answer := mapping_of(part.get("functionResponse")):
            key, name = text_of(answer.get("id")), text_of(answer.get("name"))
            text, omitted = cut_middle(self.ours.kept(key, name, result_of_parts([part])))
            failed = bool(mapping_of(answer.get("response")).get("error"))
            self.results.setdefault(key, (text, omitted, failed))

    def _call(self, call: Mapping[str, Any], message: _Message, at: int) -> None:
        key = text_of(call.get("id")) or f"#{len(message.calls)}"
        known = message.calls.get(key)
        if known is None:
            name = one_line(text_of(call.get("name")), 80) or "tool"
            known = message.calls[key] = _GeminiCall(name, call_line(call.get("args")), time_of(call.get("timestamp")))
            known.at = max(known.at, at)
            # A call without an id has only its position, which calls of other messages share.
            known.ours = self.ours.called(text_of(call.get("id")), text_of(call.get("name")), call.get("args"))
        if items_of(call.get("result")) or text_of(call.get("resultDisplay")):
            text = result_of_parts(call.get("result"), text_of(call.get("resultDisplay")))
            name = text_of(call.get("displayName"))
            known.ours = known.ours or self.ours.is_ours("", name)
            known.result, known.omitted = cut_middle(self.ours.left_out(text) if known.ours else text)
        known.failed = known.failed or text_of(call.get("status")) in _FAILED

    # ── the result ──

    def chosen(self) -> list[TranscriptEntry]:
        return [entry for message in self.messages.values() for entry in self._entries(message)]

    def _entries(self, message: _Message) -> Iterator[TranscriptEntry]:
        if message.text and message.kind in _NOTICES:
            prefix = "" if message.kind == "info" else f"{message.kind}: "
            yield TranscriptEntry("event", message.at, one_line(prefix + message.text))
        elif message.kind == "compaction":
            yield TranscriptEntry("compaction", message.at, summary_text(message.text))
        elif message.text:
            yield TranscriptEntry("user" if message.kind == "user" else "assistant", message.at, message.text)
        for key, call in message.calls.items():
            yield TranscriptEntry("tool", message.at, call.line, name=call.name, call=key)
            text, omitted, failed = call.result, call.omitted, call.failed
            if text is None:
                text, omitted, failed = self.results.get(key, (None, 0, call.failed))
            if text is not None or failed:
                yield TranscriptEntry("result", call.at, text or "", call.name, key, failed, omitted)


def _shape(kind: str, text: str, calls: Iterable[str]) -> tuple[str, str, tuple[str, ...]]:
    """Returns by what a message is recognised that got a new id."""
    return kind, text, tuple(calls)


def summary_text(text: str) -> str:
    """Returns the text of a compression's summary, without the mark around it."""
    whole = _SNAPSHOT.match(text.strip())
    return whole[1] if whole else text


def texts_of_parts(content: object) -> list[str]:
    """Returns the texts of a content, without thoughts; an image is one, too."""
    if isinstance(content, str):
        return [content] if content else []
    texts = []
    for part in items_of(content):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            if part.get("thought") is True:
                continue
            if text := text_of(part.get("text")):
                texts.append(text)
            elif "inlineData" in part or "fileData" in part:
                texts.append(IMAGE)
    return texts


def result_of_parts(parts: object, shown: str = "") -> str:
    """Returns a tool's output as sent to the model, or else as displayed to the user (`shown`)."""
    texts = []
    for part in map(mapping_of, items_of(parts)):
        response = mapping_of(mapping_of(part.get("functionResponse")).get("response"))
        texts.append(
            next((text for name in ("output", "error", "content") if (text := text_of(response.get(name)))), "")
        )
    text = "\n".join(filter(None, texts)) or shown
    for mark in (OPENING, CLOSING):  # in Qwen Code, what a hook said of the call stands escaped in its result
        text = text.replace(f"&lt;{mark[1:-1]}&gt;", mark)
    text = drop_injected(text).strip("\r\n")
    wrapped = _UNTRUSTED.fullmatch(text.strip())
    return (_OUTPUT_HEAD.sub("", wrapped[1]) if wrapped else text).strip("\r\n")


read = _GeminiReader.read
