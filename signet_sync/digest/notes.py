"""Reads the lines with which an agent hands its work over: what came out, what was decided, what is next, what waits.

They stand at the end of a report, where the person sees and can correct them, or in a call of our tool or command for
them, whose arguments count, whether or not the call got through. A note is a claim, not a deed: what the
session's deeds contradict is marked, and a decision is the person's only where the person's own words say it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from signet_sync.digest.deeds import SHELLS
from signet_sync.digest.sentences import is_question, stems
from signet_sync.digest.turns import ToolCall, Turn
from signet_sync.errors import UsageError
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import display

Label = Literal["outcome", "decided", "next", "blocked", "tried"]

LINES = 5  # of one note; an agent is asked for three at most
_LINE = late(r"^\s*(?:[-*] )?\**(Outcome|Decided|Next|Blocked|Tried):\**\s+(\S.{3,400})$")
_LABELS, _END = ("Outcome:", "Decided:", "Next:", "Blocked:", "Tried:"), 6_000  # characters of a report's end
_SAID, _SHARE = 4, 0.5  # content words of a decision that stand in the person's words, and their share of all
_ASKS = late(r"^\W*(?:(?:does|do|did|is|are|can|could|should|would|will|why|what|how|where|when|which|who)\b)", 2)
_TOOL = late(r"(?:.*[^a-z0-9])?memory_note")
_COMMAND = late(r"(?:^|[\s/;&|])signet-sync(?:\s+--?\S+(?:\s+(?!note\s)[^\s-]\S*)?)*\s+note\s")
_LABELLED = late(
    r"\**(Outcome|Decided|Next|Blocked|Tried):\**\s+(\S.{3,400}?)"
    r"(?=\\n|[\"']?(?:\s+[\"']?\**(?:Outcome|Decided|Next|Blocked|Tried):|\s*$)|[\"']\s*\d?[;&|>])"
)


class NoteLine(NamedTuple):
    """A line of a hand-over: its label, its words, and its line: in the text from 0, of a turn in the transcript."""

    label: Label
    text: str
    line: int


def note_lines(report: str) -> list[NoteLine]:
    """Returns the hand-over at the end of a report; empty if it does not end with one."""
    end = report[-_END:]
    if not any(label in end for label in _LABELS):
        return []
    lines = report.rstrip().split("\n")
    found: list[NoteLine] = []
    for number in range(len(lines) - 1, max(-1, len(lines) - 1 - 2 * LINES), -1):
        line = _LINE.match(lines[number])
        if line is not None and is_nothing(line[2]):
            continue
        if line is not None:
            found.append(NoteLine(line[1].lower(), line[2].strip(" *"), number))  # type: ignore[arg-type]
        elif lines[number].strip():
            break
    return found[:LINES][::-1]


def drop_note(report: str) -> str:
    """Returns a report without the hand-over at its end."""
    noted = note_lines(report)
    return "\n".join(report.rstrip().split("\n")[: noted[0].line]) if noted else report


def is_nothing(text: str) -> bool:
    """Returns whether words of a list say that it is empty: "Blocked: none"."""
    return text.casefold().startswith(("none", "nothing", "n/a", "keine", "aucun", "無し", "无"))


def turn_notes(turn: Turn) -> list[NoteLine]:
    """Returns what an agent handed over in a turn: at the end of its report, and by calls of our tool or command."""
    report = turn.report if turn.ended else None
    found = [one._replace(line=report.line + one.line) for one in note_lines(report.text)] if report else []
    line = turn.report.line if turn.report else turn.words.line if turn.words else 1
    said = (_read_given_note(step) for step in turn.steps if isinstance(step, ToolCall))
    called = [
        NoteLine(label.lower(), text, line)
        for text in said
        for label, text in _LABELLED.findall(text)
        if not is_nothing(text)
    ]
    return found + [one for one in called[-LINES:] if all(one[:2] != other[:2] for other in found)]


def _read_given_note(call: ToolCall) -> str:
    """Returns the note that a call was given; empty if it is another call."""
    if call.tool in SHELLS:
        command = _COMMAND.search(call.detail) if "signet-sync" in call.detail else None
        return call.detail[command.end() :] if command else ""
    return call.detail if _TOOL.fullmatch(call.tool) else ""


def hand_over(note: str) -> list[NoteLine]:
    """Returns the lines of a note that is given alone. Raises `UsageError` for what the digest would not read."""
    lines = [line for line in note.split("\n") if line.strip()]
    wrong = [line for line in lines if not _LINE.match(line)]
    if 0 < len(lines) <= LINES and not wrong:
        return note_lines("\n".join(lines))
    message = f"no line of a note: {display(wrong[0][:80])}" if wrong else f"a note has 1 to {LINES} lines"
    hint = "each begins with Outcome:, Decided:, Next:, Blocked: or Tried:, and has 4 to 400 characters behind it"
    raise UsageError(message, hint=hint, code="note-invalid")


def words_behind(decision: str, own: Mapping[int, Sequence[str]]) -> tuple[int, str] | None:
    """Returns the person's own sentence that says a decision, with its turn: no question, four of its words or more."""
    wanted = stems(decision)
    least = max(_SAID, _SHARE * len(wanted))
    for turn, said in reversed(list(_sentences(own))):
        if len(wanted & stems(said)) >= least and not is_question(said) and not _ASKS.match(said):
            return turn, said
    return None


def _sentences(own: Mapping[int, Sequence[str]]) -> Iterator[tuple[int, str]]:
    for turn, sentences in own.items():
        for said in sentences:
            yield turn, said
