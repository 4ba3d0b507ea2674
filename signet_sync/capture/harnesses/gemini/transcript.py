"""Parses Gemini CLI's chats: a log of patches to a list of messages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from signet_sync.capture.harnesses.reader import UNNAMED, LineReader, TranscriptEntry, time_of
from signet_sync.capture.harnesses.texts import (
    drop_injected,
    first_text,
    items_of,
    join_paragraphs,
    mapping_of,
    text_of,
    texts_of,
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


@dataclass(slots=True)
class _Message:
    """One message, merged from all records with its id; its calls by their ids, with the members that are known."""

    kind: str
    at: int
    text: str = ""
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)


class _GeminiReader(LineReader):
    """The messages by their ids; the file contains the session's id."""

    harness = "gemini"

    def __init__(self, file_name: str = "") -> None:
        super().__init__()
        self.messages: dict[str, _Message] = {}
        self.copies: dict[str, str] = {}  # ids that a compression gave to messages, "" for one that nobody wrote
        self.answers: dict[str, tuple[str, bool]] = {}  # by call what it gave back, and whether it failed
        self.seen = 0

    def take(self, record: Mapping[str, Any]) -> None:
        if "$rewindTo" in record:
            target = text_of(record["$rewindTo"])
            target = self.copies.get(target, target)
            while target in self.messages:
                self.messages.popitem()
        elif "type" in record and "$set" not in record:
            self._message(record)
        elif "$set" in record or "sessionId" in record:
            self._patch(mapping_of(record.get("$set", record)))

    def _patch(self, values: Mapping[str, Any]) -> None:
        """Applies metadata and perhaps a snapshot of messages, which adds and updates but removes none."""
        self.session = self.session or text_of(values.get("sessionId"))
        self.project = self.project or next(filter(None, map(text_of, items_of(values.get("directories")))), "")
        if values.get("kind") == "subagent":
            self.parent = text_of(values.get("parentSessionId")) or UNNAMED
        messages = [*map(mapping_of, items_of(values.get("messages")))]
        self._recognise_compression(messages)
        for message in messages:
            self._message(message)

    def _recognise_compression(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Recognises the snapshot after a compression: summary, thanks for it, and what was kept, all with new ids."""
        texts = [join_paragraphs(texts_of(message.get("content"))) for message in messages]
        place = next((n for n, (_, following) in enumerate(pairwise(texts)) if following == _THANKS), None)
        if place is None or messages[place].get("type") != "user":
            return
        summary, thanks, *kept = (text_of(message.get("id")) for message in messages[place:])
        if not (summary and thanks) or summary in self.messages:
            return
        earlier = [(key, (one.kind, one.text, [*one.calls])) for key, one in self.messages.items()]
        self.messages[summary] = _Message("compaction", time_of(messages[place].get("timestamp")))
        self.copies[thanks] = ""
        for key, message in reversed([*zip(kept, messages[place + 2 :], strict=True)]):
            if not key or key in self.messages:
                continue
            calls = (mapping_of(mapping_of(one).get("functionCall")) for one in items_of(message.get("content")))
            shape = text_of(message.get("type")), self._text(message), [text_of(one.get("id")) for one in calls if one]
            before = next((n for n in reversed(range(len(earlier))) if earlier[n][1] == shape), None)
            if before is not None:
                self.copies[key] = earlier[before][0]
                del earlier[before:]

    def _message(self, record: Mapping[str, Any]) -> None:
        kind, at = text_of(record.get("type")), time_of(record.get("timestamp"))
        if kind not in ("user", "gemini", *_NOTICES):
            return
        # A message without an id cannot be updated; its position serves as its key.
        self.seen += 1
        key = text_of(record.get("id")) or f"#{self.seen}"
        key = self.copies.get(key, key)
        if not key:
            return
        # The first time counts: snapshots made at a resume carry the time of the resume.
        message = self.messages.setdefault(key, _Message(kind, at))
        calls = [*map(mapping_of, items_of(record.get("toolCalls")))]
        for part in map(mapping_of, items_of(record.get("content"))):
            if call := mapping_of(part.get("functionCall")):
                calls.insert(0, call)
            elif answer := mapping_of(part.get("functionResponse")):
                failed = bool(mapping_of(answer.get("response")).get("error"))
                self.answers.setdefault(text_of(answer.get("id")), (read_result([part]), failed))
        for call in calls:
            place = text_of(call.get("id")) or f"{key}#{len(message.calls)}"
            began = max(time_of(call.get("timestamp")), at)
            known = message.calls.setdefault(place, {"name": call.get("name"), "args": call.get("args"), "at": began})
            if items_of(call.get("result")) or text_of(call.get("resultDisplay")):
                known["back"] = read_result(call.get("result"), text_of(call.get("resultDisplay")))
                known["displayName"] = call.get("displayName")
            known["failed"] = known.get("failed") or text_of(call.get("status")) in _FAILED
        message.text = self._text(record) or message.text

    def _text(self, record: Mapping[str, Any]) -> str:
        # What was displayed is what the user typed; the content also contains the files it mentions.
        own = []
        for text in texts_of(record.get("displayContent")) or texts_of(record.get("content")):
            if text.lstrip().startswith(_CONTEXT):
                found = next((match for pattern in _PROJECT if (match := pattern.search(text))), None)
                self.project = self.project or (found[1].strip() if found else "")
            else:
                own.append(drop_injected(text))
        return join_paragraphs(own)

    def choose(self) -> list[TranscriptEntry]:
        for message in self.messages.values():
            self.at = message.at
            if message.kind == "compaction":
                self.add("compaction", unwrap_summary(message.text))
            elif message.kind in _NOTICES:
                self.add("event", message.text and f"{message.kind}: {message.text}".removeprefix("info: "))
            else:
                self.add("user" if message.kind == "user" else "assistant", message.text)
            for key, call in message.calls.items():
                shown = text_of(call.get("displayName"))
                self.call(key, text_of(call["name"]), call["args"], shown)
                back, failed = call.get("back"), bool(call["failed"])
                if back is None:
                    back, failed = self.answers.get(key, (None, failed))
                if back is not None or failed:
                    self.result(key, back or "", failed=failed, at=call["at"])
        return self.entries


def unwrap_summary(text: str) -> str:
    """Returns the text of a compression's summary, without the mark around it."""
    whole = _SNAPSHOT.match(text.strip())
    return whole[1] if whole else text


def read_result(parts: object, shown: str = "") -> str:
    """Returns a tool's output as sent to the model, or else as displayed to the user (`shown`)."""
    responses = (
        mapping_of(mapping_of(part.get("functionResponse")).get("response"))
        for part in map(mapping_of, items_of(parts))
    )
    text = "\n".join(filter(None, (first_text(one, "output", "error", "content") for one in responses))) or shown
    for mark in (OPENING, CLOSING):  # in Qwen Code, what a hook said of the call stands escaped in its result
        text = text.replace(f"&lt;{mark[1:-1]}&gt;", mark)
    text = drop_injected(text).strip("\r\n")
    wrapped = _UNTRUSTED.fullmatch(text.strip())
    return (_OUTPUT_HEAD.sub("", wrapped[1]) if wrapped else text).strip("\r\n")


read = _GeminiReader.read
