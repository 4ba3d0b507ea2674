"""Reads reports: the sentence that says what came out, and the lines with which an agent hands its work over.

The sentence is found by place and form first, by few words second. Lines of a hand-over say what came out, what was
decided, what is next, what waits. They stand at the end of a report, where the person sees and can correct them, or in
a call of our tool or command for them, whose arguments count, whether or not the call got through. A note is a claim,
not a deed; a decision is the person's only where the person's own words say it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, cast

from signet_sync.digest.deeds import SHELLS, Printed
from signet_sync.digest.sentences import is_question, split, stems
from signet_sync.digest.turns import Passage, ToolCall, Turn, passages
from signet_sync.errors import UsageError
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import display

_READ = 16  # passages of a report
# Told to the person: courtesies, that checks went well, advice, places, addresses, what was not of this work.
_SAYS_LITTLE = late(
    r"^\W*(?:(?:perfect|great|excellent|done|all done|good|ok(?:ay)?|sure|right|exactly|you'?re (?:absolutely )?right)\b[^.!?:]{0,25}[.!:]?\W*$"
    r"|(?:here(?:’|')?s|here are|below (?:is|are)|let me|i'll|i’ll|i will|voici|hier (?:ist|sind))\b.{0,80}:?$"
    r"|(?:all|everything|the)?\s*(?:\d+ )?(?:[\w-]+ )?(?:tests?|lint\w*|checks?|builds?|ci|changes)\b[^.]{0,40}(?:pass\w*|green|clean|succeed\w*)\b"
    r"|(?:the )?(?:build|rebase|merge|push|commit|task|fix)(?: is| was)?(?: now)? (?:complete\w*|successful\w*|done)\b.{0,20}$|committed\b.{0,40}$"
    r"|i(?:'d| would|’d)? (?:recommend|suggest)|you (?:can|could|should|need|will)|try|run|first|if you|to (?:test|run|use|verify)"
    r"|(?:commit|branch|pr|url|link|file|root cause|status|worktree|base)s?\b[^.:]{0,25}: ?\S|pushed|verified|.{0,60}https?://"
    r"|.{0,200}\b(?:pre-existing|unrelated|not related)\b)",
    re.I,
)
# What is left, or was the matter, did not come out.
_ASIDE = late(
    r"\W*(?:\d+\W*)?(?:the |suggested )?(?:next|remaining|what.s (?:left|next)|to.?do|open|blocked|problem|issue|bug|(?:root )?cause|before)\b",
    re.I,
)
_LEAD = late(r"^(?:in )?(?:summary|short|result|outcome)\b[^:.]{0,30}: (?=\S)", re.I)
_NUMBERED = late(r"\w+ #?\d+")  # "Line 733": says nothing of what is behind it
_DID = late(
    r"^\W*(?:i(?:'ve| have|’ve)? |we(?:'ve| have)? |it |both |all )?(?:now |successfully |also )?"
    r"(?:add|fix|creat|replac|implement|renam|remov|mov|chang|updat|extract|commit|push|merg|refactor|switch|split|group|limit|rewr|wr[io]t|built|build|set|mad|found|adjust|enabl|disabl|wir|clean|convert|publish|deploy|open|clos|rebas|revert|document|expos|restor)\w*\b(?!,)"
    r"|\b(?:is|are) now\b|\bnow (?:\w+s|\w+ed)\b|\b(?:habe|wurde|j'ai|a été|he |se ha|foi |ho |è stat)|しました|已|했습니다|добавил|исправ|eklendi|đã",
    re.I,
)


def headline(report: str, fetched: Printed) -> str:
    """Returns the sentence of a report that best says what came out; empty if none says anything."""
    ranked: list[tuple[float, int, str]] = []
    found = passages(drop_note(report))[:_READ]
    aside = False
    for place, passage in enumerate(found):
        if passage.form == "heading":
            aside = _ASIDE.match(passage.text) is not None
        for sentence in () if aside or passage.form == "heading" else split(passage.text)[:6]:
            said = _LEAD.sub("", sentence.strip())
            if len(stems(said)) < 2 or " " not in said or is_question(said) or _SAYS_LITTLE.match(said):
                continue
            ranked.append((_worth(said, passage, len(ranked)), place, said))
    ranked.sort(key=lambda one: -one[0])
    best = next((one for one in ranked if not fetched.holds(one[2])), None)
    return "" if best is None else _tell_list(found, best[1]) or best[2].rstrip(" .。;:：")


def _worth(said: str, passage: Passage, before: int) -> float:
    """Returns how well a sentence says what came out: its place, and whether it acts."""
    # An item is a part of something that only its list says, and so is what leads to a list.
    part = passage.form == "item" or said.endswith((":", "："))
    short = len(stems(said)) < 4
    place = -0.2 * before if before else 0.8
    return place + 0.9 * (_DID.search(said) is not None) - 1.1 * part - 1.2 * short


def _tell_list(found: Sequence[Passage], best: int) -> str:
    """Returns the list that a passage is of or leads to, told by the bold words of its items.

    Each item alone tells of a part; the bold words name them all. What leads to a list says nothing without it.
    """
    leads = found[best].form != "item"
    first = last = best + leads
    while first and found[first - 1].form == "item":
        first -= 1
    while last < len(found) and found[last].form == "item":
        last += 1
    if first == last or (leads and not found[best].text.endswith((":", "："))):
        return ""
    above = found[first - 1] if first else None
    lead = above.text if above is not None and (above.form == "heading" or above.text.endswith((":", "："))) else ""
    lead = " ".join(said for said in split(lead) if not _SAYS_LITTLE.match(said)).rstrip(" :：")
    heads = [passage.head for passage in found[first:last] if passage.head and not _NUMBERED.fullmatch(passage.head)]
    if len(heads) > 1 and _DID.search(lead):
        return f"{lead}: {', '.join(heads)}"
    if len(heads) > 2 or sum(_DID.search(head) is not None for head in heads) > 1:
        return ", ".join(heads)
    return f"{lead}: {'; '.join(passage.text for passage in found[first:last])}" if leads else ""


def list_sentences(report: str) -> Iterator[str]:
    """Yields the sentences of a report, without code, tables and block quotes; headings end in a colon."""
    for passage in passages(report):
        if passage.form == "heading":
            yield f"{passage.text.rstrip(' :：.')}:"
        else:
            yield from split(passage.text)


# ── the lines of a hand-over ──


Label = Literal["outcome", "decided", "next", "blocked", "tried"]
LINES = 5  # of one note; an agent is asked for three at most
_NAMES = "Outcome|Decided|Next|Blocked|Tried"
_LINE = late(rf"^\s*(?:[-*] )?\**({_NAMES}):\**\s+(\S.{{3,400}})$")
_END = 6_000  # characters of a report's end
_SAID, _SHARE = 4, 0.5  # content words of a decision that stand in the person's words, and their share of all
_ASKS = late(r"^\W*(?:(?:does|do|did|is|are|can|could|should|would|will|why|what|how|where|when|which|who)\b)", re.I)
_TOOL = late(r"(?:.*[^a-z0-9])?memory_note")
_COMMAND = late(r"(?:^|[\s/;&|])signet-sync(?:\s+--?\S+(?:\s+(?!note\s)[^\s-]\S*)?)*\s+note\s")
_LABELLED = late(
    rf"\**({_NAMES}):\**\s+(\S.{{3,400}}?)(?=\\n|[\"']?(?:\s+[\"']?\**(?:{_NAMES}):|\s*$)|[\"']\s*\d?[;&|>])"
)


class NoteLine(NamedTuple):
    """A line of a hand-over: its label, its words, and its line: in the text from 0, of a turn in the transcript."""

    label: Label
    text: str
    line: int


def note_lines(report: str) -> list[NoteLine]:
    """Returns the hand-over at the end of a report; empty if it does not end with one."""
    if not any(f"{name}:" in report[-_END:] for name in _NAMES.split("|")):
        return []
    lines = report.rstrip().split("\n")
    found: list[NoteLine] = []
    for number in range(len(lines) - 1, max(-1, len(lines) - 1 - 2 * LINES), -1):
        line = _LINE.match(lines[number])
        if line is not None and not is_nothing(line[2]):
            found.append(NoteLine(cast(Label, line[1].lower()), line[2].strip(" *"), number))
        elif line is None and lines[number].strip():
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
    called = [
        NoteLine(cast(Label, label.lower()), text, line)
        for call in turn.calls
        for label, text in _LABELLED.findall(_read_given_note(call))
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


def find_own_sentence(decision: str, own: Mapping[int, Sequence[str]]) -> tuple[int, str] | None:
    """Returns the person's own sentence that says a decision, with its turn: no question, four of its words or more."""
    wanted = stems(decision)
    least = max(_SAID, _SHARE * len(wanted))
    for turn in reversed(list(own)):
        for said in reversed(own[turn]):
            if len(wanted & stems(said)) >= least and not is_question(said) and not _ASKS.match(said):
                return turn, said
    return None
