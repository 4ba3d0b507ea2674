"""Helps the parsers with texts: reads them from any value, drops what we injected, cuts long ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.managed_block import BACKGROUND, CLOSING, OPENING, STORED
from signet_sync.text.sanitizer import sanitize_transcript_v2

# No harness gives a model more of a tool's result; of what is longer, the middle is left out while reading.
RESULT_LIMIT = 200_000

IMAGE = "[image]"
LINE_LIMIT = 300
NOTE_LIMIT = 1_500  # of what an agent hands over
_DETAILS = ("command", "cmd", "file_path", "absolute_path", "notebook_path", "path", "dir_path", "pattern", "query")
_MORE_DETAILS = ("url", "skill", "subject", "title", "name", "question", "description", "prompt", "message")
_PATCHED = late(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
# Also within JSON.
_BREAK = late(r"[ \t]*(?:\r?\n|\\n|\\r\\n)\s*")
# Words are shorter; a key is, too, so that what names it as a secret sees all of it.
_DATA = 4_096
_ENCODED = late(rf"(?<![\w+/-])(?:[\w+/-]{{{_DATA},}}|(?:[\w+/-]{{60,}}\r?\n){{60,}}[\w+/-]*)={{0,2}}", re.ASCII)


def text_of(value: object) -> str:
    """Returns the value if it is a text, else an empty text."""
    return value if isinstance(value, str) else ""


def mapping_of(value: object) -> Mapping[str, Any]:
    """Returns the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items_of(value: object) -> list[Any]:
    """Returns the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def first_text(given: Mapping[str, Any], *names: str) -> str:
    """Returns the first of some members that is a text with characters."""
    return next(filter(None, (text_of(given.get(name)) for name in names)), "")


def texts_of(content: object) -> list[str]:
    """Returns the texts of a message, which is one or has blocks; without thoughts, an image as a placeholder."""
    texts = [content] if isinstance(content, str) and content else []
    for block in items_of(content):
        given = mapping_of(block)
        if given.get("thought") is True:
            continue
        if text := text_of(block) or text_of(given.get("text")):
            texts.append(text)
        elif text_of(given.get("type")).endswith("image") or "inlineData" in given or "fileData" in given:
            texts.append(IMAGE)
    return texts


def file_stem(file_name: str) -> str:
    """Returns the last part of a path without `.jsonl`."""
    return file_name.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl")


def join_paragraphs(parts: Iterable[str]) -> str:
    """Joins the parts that are not blank, as paragraphs."""
    return "\n\n".join(part.strip("\r\n") for part in parts if part.strip())


def drop_spans(text: str, opening: str, closing: str) -> str:
    """Removes everything from each `opening` to the next `closing`; a span that never closes is kept. Linear."""
    if opening not in text:
        return text
    kept, at = [], 0
    while (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        kept.append(text[at:start])
        at = end + len(closing)
    kept.append(text[at:])
    return "".join(kept)


class Tags:
    """The tags with which a harness marks what it added to a user's words."""

    def __init__(self, *names: str) -> None:
        mark = rf"[ \t]*<({'|'.join(map(re.escape, names))})(?: [^<>\n]{{0,500}})?>"
        self._leading = re.compile(f"^{mark}", re.MULTILINE)
        self._adjacent = re.compile(mark)

    def split(self, text: str) -> tuple[str, list[tuple[str, str]]]:
        """Returns the text outside, and name and content of each tagged span; linear.

        A tag counts only if it is closed and opens a line (or follows another one); elsewhere it is a quotation.
        """
        if "<" not in text:
            return text, []
        kept: list[str] = []
        spans: list[tuple[str, str]] = []
        at = look = 0
        never_closed: set[str] = set()
        while match := (self._adjacent.match(text, at) if spans and look == at else None) or self._leading.search(
            text, look
        ):
            name, look = match[1], match.end()
            end = -1 if name in never_closed else text.find(f"</{name}>", look)
            if end < 0:
                never_closed.add(name)
                continue
            kept.append(text[at : match.start()])
            spans.append((name, text[look:end]))
            at = look = end + len(name) + 3
        kept.append(text[at:])
        return "".join(kept), spans


def drop_injected(text: str) -> str:
    """Removes what nobody said: what we (and hooks in general) injected into the conversation, and encoded data."""
    # Ours first: a page that mentions the other tag must not end its span early.
    text = drop_spans(_drop_our_blocks(text), "<hook_context>", "</hook_context>")
    return _ENCODED.sub(lambda data: f"[base64, {len(data[0]):,} characters]", text) if len(text) > _DATA else text


def _drop_our_blocks(text: str) -> str:
    """Removes our blocks, to the end where a harness cut one off. A mark that somebody wrote is a word; linear."""
    if OPENING not in text:
        return text
    kept, at, look = [], 0, 0
    closing = text.find(CLOSING)
    while (start := text.find(OPENING, look)) >= 0:
        look = start + len(OPENING)
        if 0 <= closing < look:
            closing = text.find(CLOSING, look)
        ours, following = _is_ours(text, look), text.find(OPENING, look)
        if not ours and (closing < 0 or 0 <= following < closing):
            continue
        kept.append(text[at:start])
        at = look = closing + len(CLOSING) if closing >= 0 else len(text)
    kept.append(text[at:])
    return "".join(kept)


def _is_ours(text: str, start: int) -> bool:
    """Returns whether our explaining line is at a position, or its beginning, where a harness cut the text there."""
    gap = _BREAK.match(text, start)
    start = gap.end() if gap else start
    rest = text[start : start + len(BACKGROUND)].rstrip()
    return any(
        text.startswith(line, start) or (rest and len(text) - start < len(line) and line.startswith(rest))
        for line in (BACKGROUND, STORED)
    )


def cut_middle(text: str) -> tuple[str, int]:
    """Returns beginning and end of a text beyond `RESULT_LIMIT`, and how many characters between them were left out.

    The text is sanitized before it is cut, since half a secret is no longer recognised as one.
    """
    if len(text) <= RESULT_LIMIT:
        return text, 0
    text = sanitize_transcript_v2(text)
    if len(text) <= RESULT_LIMIT:
        return text, 0
    half = RESULT_LIMIT // 2
    return f"{text[:half]}\n{text[-half:]}", len(text) - 2 * half


def one_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Returns the text as one line, cut at `limit` characters (sanitized before, see `cut_middle`)."""
    line = " ".join(text[: 10 * limit].split())
    if len(line) <= limit:
        return line
    return sanitize_transcript_v2(line)[:limit].rstrip() + " …"


def call_line(arguments: object) -> str:
    """Returns a tool's arguments in one line: the command, file or pattern; else all by name."""
    if isinstance(arguments, str):
        patched = _PATCHED.findall(arguments[:100_000])
        return one_line(", ".join(patched) if patched else arguments)
    given = mapping_of(arguments)
    if isinstance(patch := given.get("patchText"), str):
        return call_line(patch)
    if isinstance(note := given.get("note"), str):  # an agent's hand-over (`digest.reports`) is kept whole
        return one_line(note.strip().replace("\n", "\\n"), NOTE_LIMIT)
    for name in (*_DETAILS, *_MORE_DETAILS):
        value = given.get(name)
        if isinstance(value, list):
            value = " ".join(item for item in value if isinstance(item, str))
        if isinstance(value, str) and value.strip():
            place = text_of(given.get("path")) if name in ("pattern", "query") else ""
            if name in ("command", "cmd"):
                value = value.strip().replace("\n", "\\n")  # where a message ends is told by its lines
            limit = NOTE_LIMIT if "signet-sync" in value and " note " in value else LINE_LIMIT
            return one_line(f"{value} in {place}" if place else value, limit)
    return one_line(", ".join(f"{name}: {_value(value)}" for name, value in list(given.items())[:20]))


def _value(value: object) -> str:
    """Formats a tool's argument for display."""
    if isinstance(value, str):
        return one_line(value, 80)
    try:
        return one_line(json.dumps(value, ensure_ascii=False), 80)
    except (RecursionError, ValueError):
        return "…"


# ── summaries of compactions ──

_REMINDERS = Tags("system-reminder")
# How the record begins that Claude Code writes for its model after a compaction, and what it writes behind the summary.
CONTINUED = "This session is being continued from a previous conversation"
_PREAMBLE = late(rf"{CONTINUED}[^.:\n]*[.:]?(?:[ \t]*The (?:conversation|summary)[^.:\n]*[.:])?\s*")
_HEADED = late(r"(?:Analysis:.*?^)?(?:Summary:\s*)+", re.DOTALL | re.MULTILINE)
_AFTERWORD = late(
    r"^(?:If you need specific details from before compaction|The messages after this summary are the most recent"
    r"|(?:Please )?[Cc]ontinue the conversation from where (?:it|we) left (?:it )?off"
    r"|Recent messages are preserved verbatim)",
    re.MULTILINE,
)
_HANDED_OVER = "Another language model started to solve this problem and produced a summary"


def compaction_text(raw: str) -> str:
    """Returns the summary itself.

    The known sentences before it (in Codex's all up to the colon) and the instructions after it are dropped.
    """
    text = drop_injected(raw.replace("\r\n", "\n").replace("\r", "\n"))
    text = _REMINDERS.split(text)[0].strip()
    if preamble := _PREAMBLE.match(text):
        text = text[preamble.end() :]
        afterword = _AFTERWORD.search(text)
        text = text[: afterword.start()] if afterword else text
    elif text.startswith(_HANDED_OVER):
        before, _, rest = text.partition(":")
        text = rest if "\n" not in before and rest.strip() else text
    text = text.strip()
    headed = _HEADED.match(text)
    return (text[headed.end() :] if headed else text).strip()
