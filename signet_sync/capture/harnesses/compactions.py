"""Extracts the summary of a compaction from the text that the harness wraps around it for the model."""

from __future__ import annotations

import re

from signet_sync.capture.harnesses.texts import Tags, drop_injected, drop_spans
from signet_sync.formats.lazy_pattern import late

_REMINDERS = Tags("system-reminder")
# The beginning of the record that Claude Code writes for its model after a compaction.
CONTINUED = "This session is being continued from a previous conversation"
_PREAMBLE = late(rf"{CONTINUED}[^.:\n]*[.:]?(?:[ \t]*The (?:conversation|summary)[^.:\n]*[.:])?")
_SUMMARY_LINE = late(r"^Summary:[ \t]*\n", re.MULTILINE)
# On the same line as the preamble.
_SUMMARY = late(r"(?:(?<=[.:!?])[ \t]+|^[ \t]*)Summary:[ \t]*")
_HEADED = late(r"(?:Summary:\s*)+")
# What Claude Code writes for the model after the summary, in the known versions.
_AFTERWORD = late(
    r"^(?:If you need specific details from before compaction|The messages after this summary are the most recent"
    r"|(?:Please )?[Cc]ontinue the conversation from where (?:it|we) left (?:it )?off"
    r"|Recent messages are preserved verbatim)",
    re.MULTILINE,
)
_HANDED_OVER = "Another language model started to solve this problem and produced a summary"
_GAPS = late(r"\n\n+")


def compaction_text(raw: str) -> str:
    """Returns the summary itself, equal for both forms in which harnesses deliver it.

    In the model's own words: `<analysis>…</analysis>` is dropped, `<summary>…</summary>` unwrapped. In the transcript:
    the preamble (up to Claude Code's `Summary:`, up to the colon of Codex's) and the instructions after the summary are
    dropped, however many lines they take; an unknown preamble is kept. Runs of empty lines become one, as Claude Code
    does when it converts one form to the other.
    """
    text = drop_injected(raw.replace("\r\n", "\n").replace("\r", "\n"))
    text = _REMINDERS.split(text)[0].strip()
    if text.startswith(CONTINUED):
        text = _find_continuation(text)
    elif text.startswith(_HANDED_OVER):
        preamble, _, rest = text.partition(":")
        text = rest if "\n" not in preamble and rest.strip() else text
    text = _unwrap_summary(text).strip()
    if headed := _HEADED.match(text):
        text = text[headed.end() :]
    return _GAPS.sub("\n\n", text).strip()


def _find_continuation(text: str) -> str:
    preamble = _PREAMBLE.match(text)
    rest = text[preamble.end() :] if preamble else text
    line = rest.partition("\n")[0]
    heading = _SUMMARY_LINE.search(rest)
    before = rest[len(line) : heading.start()].strip() if heading else ""
    if inline := _SUMMARY.search(line):
        text = rest[inline.end() :]
    elif heading and (not before or before.startswith(("Analysis:", "<analysis>"))):
        # An unknown sentence on the preamble's line belongs to the preamble.
        text = rest[heading.end() :]
    else:
        text = rest
    afterword = _AFTERWORD.search(text)
    return text[: afterword.start()] if afterword else text


def _unwrap_summary(text: str) -> str:
    text = drop_spans(text, "<analysis>", "</analysis>")
    if text.lstrip().startswith("<analysis>"):
        text = text[text.find("<summary>") :] if "<summary>" in text else text.replace("<analysis>", "", 1)
    before, opened, rest = text.partition("<summary>")
    if not opened:
        return text
    # The last closing tag: a summary may quote the tags.
    inner, _, after = rest.rpartition("</summary>") if "</summary>" in rest else (rest, "", "")
    return "\n\n".join(part.strip() for part in (before, inner, after) if part.strip())
