"""Reads reports: the sentence that says what came out, and the lines with which an agent hands its work over.

The sentence is found by place and form first, by few words second. Lines of a hand-over say what came out, what was
decided, what is next, what waits. They stand at the end of a report, where the person sees and can correct them, or in
a call of our tool or command for them, whose arguments count, whether or not the call got through. A note is a claim,
not a deed: what the session's deeds contradict is marked, and a decision is the person's only where the person's own
words say it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from signet_sync.digest.deeds import SHELLS, Printed
from signet_sync.digest.sentences import EMPTY, is_question, split, stems
from signet_sync.digest.turns import Passage, ToolCall, Turn, label_of, passages
from signet_sync.errors import UsageError
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import display

_READ = 12  # passages of a report
_OPENS = late(
    r"^\W*(?:so yes|yes|no|yep|right|correct|done|fixed|you['’]?re (?:absolutely )?right|in short|short (?:version|answer)|good (?:question|point|catch)"
    r"|tl;?dr|perfect|great|fertig|erledigt|ja|oui|fait|c'est fait|parfait|sí|listo|hecho|pronto|feito|готово|tamam|完了(?:しました)?|完成|搞定|완료)\s*[,.!—–:：。！-]+\s*(?=\w)",
    re.I,
)
# Told to the person, or about a commit: advice, places, addresses.
_ADVICE = late(
    r"^\W*(?:and )?(?:i(?:'d| would|’d)? (?:recommend|suggest|propose)|you (?:can|may|might|could|should|need|will)|try|run|first|if you|to (?:test|run|use|verify)|next time|note|fyi|start|use"
    r"|(?:commit|branch|pr|draft pr|url|link|file|workflow run|run|status|worktree|base|pushed|verified)s?\b[^.:]{0,25}: ?\S|pushed (?:branch|to)|verified|commit successful|[\\w/.-]+ (?:→|->) \\w+|.{0,60}https?://\b)",
    re.I,
)
_DID = late(
    r"^\W*(?:i(?:'ve| have|’ve)? |we(?:'ve| have)? |it |both |all )?(?:now |successfully |also )?"
    r"(?:add|fix|creat|replac|implement|renam|remov|mov|chang|updat|extract|commit|push|merg|refactor|switch|split|group|limit|rewr|wr[io]t|built|build|set|mad|found|adjust|enabl|disabl|wir|clean|convert|publish|deploy|open|clos|rebas|revert|document|expos|restor)\w*\b"
    r"|\b(?:is|are) now\b|\bnow (?:\w+s|\w+ed)\b|\b(?:habe|wurde|j'ai|a été|he |se ha|foi |ho |è stat)|しました|已|했습니다|добавил|исправ|eklendi|đã",
    re.I,
)
_REFERS = late(r"^\W*(?:this|that|these|those|it|they)\b", re.I)  # to a sentence before, which may not be told


def headline(report: str, fetched: Printed | None = None) -> str:
    """Returns the sentence of a report that best says what came out; empty if none says anything."""
    ranked: list[tuple[float, int, str]] = []
    found = passages(drop_note(report), _READ)
    for place, passage in enumerate(found):
        # What is left, waits, or is said about the work did not come out.
        if passage.form == "heading" or label_of(passage.label) is not None:
            continue
        for sentence in split(passage.text)[:6]:
            said = _OPENS.sub("", sentence.strip())
            if len(stems(said)) < 2 or " " not in said or is_question(said) or EMPTY.match(said) or _ADVICE.match(said):
                continue
            ranked.append((_worth(said, passage, len(ranked)), place, said))
    ranked.sort(key=lambda one: -one[0])
    best = next((one for one in ranked if fetched is None or not fetched.holds(one[2])), None)
    return "" if best is None else _tell_list(found, best[1]) or best[2].rstrip(" .。;:：")


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
    lead = found[first - 1].text if first and found[first - 1].text.endswith((":", "：")) else found[first].label
    lead = _OPENS.sub("", lead).rstrip(" :：")
    heads = [passage.head for passage in found[first:last] if passage.head]
    if len(heads) > 1 and _DID.search(lead):
        return f"{lead}: {', '.join(heads)}"
    if len(heads) > 2 or sum(_DID.search(head) is not None for head in heads) > 1:
        return ", ".join(heads)
    return f"{lead}: {'; '.join(passage.text for passage in found[first:last])}" if leads else ""


def _worth(said: str, passage: Passage, before: int) -> float:
    """Returns how well a sentence says what came out: its place, and whether it acts."""
    did, leads = _DID.search(said) is not None, said.endswith((":", "："))
    # An item that tells of no deed is a part of something that only its list says, and so is what leads to a list.
    score = (0.8 if not before else 0.0) - 0.18 * before - 0.9 * leads
    score -= (1.1 if did else 2.0) * (passage.form == "item") + 1.2 * (len(stems(said)) < 4)
    return score + 0.9 * did - 0.8 * (_REFERS.match(said) is not None)


Label = Literal["outcome", "decided", "next", "blocked", "tried"]

# ── the lines of a hand-over ──


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
