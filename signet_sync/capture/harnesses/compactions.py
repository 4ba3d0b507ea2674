"""Summaries of compactions, freed of what the harness wrapped around them for the model."""

from __future__ import annotations

import re

from signet_sync.capture.harnesses.texts import Tags, without_injected, without_spans
from signet_sync.formats.lazy_pattern import late

_REMINDERS = Tags("system-reminder")
# How the record begins that Claude Code writes for its model after a compaction.
CONTINUED = "This session is being continued from a previous conversation"
_PREAMBLE = late(rf"{CONTINUED}[^.:\n]*[.:]?(?:[ \t]*The (?:conversation|summary)[^.:\n]*[.:])?")
_SUMMARY_LINE = late(r"^Summary:[ \t]*\n", re.MULTILINE)
# On the preamble's own line.
_SUMMARY = late(r"(?:(?<=[.:!?])[ \t]+|^[ \t]*)Summary:[ \t]*")
_HEADED = late(r"(?:Summary:\s*)+")
# What Claude Code says to the model after the summary, in the versions that we know.
_AFTERWORD = late(
    r"^(?:If you need specific details from before compaction|The messages after this summary are the most recent"
    r"|(?:Please )?[Cc]ontinue the conversation from where (?:it|we) left (?:it )?off"
    r"|Recent messages are preserved verbatim)",
    re.MULTILINE,
)
_HANDED_OVER = "Another language model started to solve this problem and produced a summary"
_GAPS = late(r"\n\n+")


def compaction_text(raw: str) -> str:
    """The summary itself, equal for both forms in which harnesses hand it over.

    A model's own words: `<analysis>…</analysis>` dropped, `<summary>…</summary>` unwrapped. What stands in the
    transcript: the preamble (to Claude Code's `Summary:`, to the colon of Codex's) and the instructions that follow it
    dropped, on however many lines they stand; what is no known preamble is kept. Runs of empty lines become one, as
    Claude Code does on the way from one form to the other.
    """
    text = without_injected(raw.replace("\r\n", "\n").replace("\r", "\n"))
    text = _REMINDERS.split(text)[0].strip()
    if text.startswith(CONTINUED):
        text = _continued(text)
    elif text.startswith(_HANDED_OVER):
        preamble, _, rest = text.partition(":")
        text = rest if "\n" not in preamble and rest.strip() else text
    text = _unwrapped(text).strip()
    if headed := _HEADED.match(text):
        text = text[headed.end() :]
    return _GAPS.sub("\n\n", text).strip()


def _continued(text: str) -> str:
    preamble = _PREAMBLE.match(text)
    rest = text[preamble.end() :] if preamble else text
    line = rest.partition("\n")[0]
    heading = _SUMMARY_LINE.search(rest)
    before = rest[len(line) : heading.start()].strip() if heading else ""
    if inline := _SUMMARY.search(line):
        text = rest[inline.end() :]
    elif heading and (not before or before.startswith(("Analysis:", "<analysis>"))):
        # A sentence that we do not know on the preamble's line belongs to it.
        text = rest[heading.end() :]
    else:
        text = rest
    afterword = _AFTERWORD.search(text)
    return text[: afterword.start()] if afterword else text


def _unwrapped(text: str) -> str:
    text = without_spans(text, "<analysis>", "</analysis>")
    if text.lstrip().startswith("<analysis>"):
        text = text[text.find("<summary>") :] if "<summary>" in text else text.replace("<analysis>", "", 1)
    before, opened, rest = text.partition("<summary>")
    if not opened:
        return text
    # The last closing tag: a summary may quote the tags.
    inner, _, after = rest.rpartition("</summary>") if "</summary>" in rest else (rest, "", "")
    return "\n\n".join(part.strip() for part in (before, inner, after) if part.strip())
