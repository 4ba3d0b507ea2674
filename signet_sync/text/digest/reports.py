"""Finds the assistant's reports, and extracts the statements of their sections and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest.blocks import MessagePassage, passages
from signet_sync.text.digest.conversation import Dialogue, Kind, OutcomeItem
from signet_sync.text.digest.cues import Cues
from signet_sync.text.digest.replies import PLANS
from signet_sync.text.digest.sentences import IS_CJK, is_question, split, stems
from signet_sync.text.digest.statements import POINTS_BACK, SentenceContext, kind_by_rules
from signet_sync.text.digest.turns import SpokenMessage

# Reports are parsed, nothing else: the best one, those nearly as good, and what is said last.
_REPORTS, _REPORT_TEXT = 12, 200_000
_GOOD = 0.9
_CHOICES = 150  # sentences before the report that may state a choice

_OF_LABEL: dict[str, Kind] = {
    "next": "next",
    "blocker": "blocker",
    "decision": "decision",
    "constraint": "constraint",
    "preference": "preference",
}
_REPORTED = ("next", "blocker", "decision", "constraint", "done", "state")
_OF_MARK: dict[str, Kind] = {"open": "next", "blocked": "blocker"}


class ResultsReport(NamedTuple):
    """A message of the assistant that reports results, read as passages; `late` from the best one on."""

    place: int
    message: SpokenMessage
    read: list[MessagePassage]
    late: bool


def reports(dialogue: Dialogue) -> list[ResultsReport]:
    """Returns the messages that report results, in order; the last message is always included."""
    if not dialogue.assistants:
        return []
    rated = [(_worth(dialogue, place, message), place, message) for place, message in dialogue.assistants]
    _, best, top = max(rated)
    kept: dict[int, SpokenMessage] = {best: top}
    size = 0
    for score, place, message in reversed(rated):
        if place < best and score < _GOOD:
            continue
        size += len(message.text)
        if len(kept) >= _REPORTS or size > _REPORT_TEXT:
            break
        kept[place] = message
    return [
        ResultsReport(place, kept[place], passages(kept[place].text, dialogue.cues), place >= best)
        for place in sorted(kept)
    ]


def has_label(cues: Cues, text: str) -> bool:
    """Returns whether a message has the heading, bold line or lead-in of a report."""
    for line in text.split("\n", 200)[:200]:
        labelled = line.lstrip().startswith(("#", "**", "__")) or line.rstrip().endswith((":", "：", "**"))
        if labelled and cues.kind_of(line.strip(" #*_:：")) in _REPORTED:
            return True
    return False


def _worth(dialogue: Dialogue, place: int, message: SpokenMessage) -> float:
    """Scores how much a message looks like a report: long, with labels, after the last edit and run, near the end."""
    text = message.text
    length = len(text) * (2.5 if IS_CJK.search(text[:400]) else 1)
    score = min(length, 600) / 600 + 0.5 * place / (len(dialogue.turns) or 1)
    score += 0.6 if has_label(dialogue.cues, text) else 0.0
    score += 0.3 if place > dialogue.last_edit else 0.0
    score += 0.3 if place > dialogue.last_run else 0.0
    score -= 0.3 if length < 80 else 0.0
    score -= 0.2 if len(text) < 200 and is_question(text.strip().split("\n")[-1]) else 0.0
    return score


def section_statements(dialogue: Dialogue, found: list[ResultsReport]) -> Iterator[OutcomeItem]:
    """Yields the statements under known labels, or with a check mark."""
    for report in found:
        above = ""
        for passage in report.read:
            # A bold line labels the paragraph below it, not the one after that.
            before, above = above, passage.label if passage.form == "paragraph" else ""
            if passage.form == "heading" or passage.struck or passage.mark == "done":
                continue
            label = dialogue.cues.kind_of(passage.label)
            if label == "constraint" and before == passage.label:
                continue
            kind = _OF_MARK.get(passage.mark) if label in ("state", "", "done") else _OF_LABEL.get(label)
            if kind is None:
                continue
            texts = [passage.text] if passage.form != "paragraph" else split(passage.text)[:4]
            if kind == "next" and _NOT_BEFORE.match(passage.label):
                texts = [f"{passage.label}: {text}" for text in texts]
            for text in texts:
                if not (is_question(text) or dialogue.cues.has("offer", text) or _NOTHING.match(text) or _asked(text)):
                    yield OutcomeItem(kind, text, report.message.line + passage.line, report.place, "section")


# "Once the review is through:" says when, which is part of the step.
_NOT_BEFORE = late(
    r"(?:once|when|after|as soon as|before|sobald|wenn|nach|vor|nachdem|dès|quand|une fois|après|avant|cuando|una vez|después"
    r"|antes|quando|depois|assim que|dopo|prima|appena|когда|после|до|как только)\b.{6,60}$|.{2,40}(?:之后|以后|后|之前|たら|後|前)$",
    re.IGNORECASE,
)
_NOTHING = late(
    r"^\W*(?:none|nothing|n/?a|no (?:blockers?|open points?|next steps?)|keine?|nichts|aucun\w*|rien"
    r"|ningun\w*|nada|nessun\w*"
    r"|niente|нет|ничего|无|没有|なし|ありません|없음)\b.{0,40}$",
    re.IGNORECASE,
)


def _asked(text: str) -> bool:
    """Returns whether a text contains a question: "lower the threshold? your call"."""
    return any(is_question(one) for one in split(text))


def possible_blockers(dialogue: Dialogue, found: list[ResultsReport]) -> Iterator[OutcomeItem]:
    """Yields possible blockers of the last reports, if the person then turns to another person."""
    turned = (one for place, _ in dialogue.users[-2:] for one, _ in dialogue.sentences_of(place))
    if not any(dialogue.cues.has("asks", one) for one in turned):
        return
    for report in found[-2:]:
        for passage in report.read:
            for sentence in split(passage.text) if passage.form != "heading" else ():
                parts = [one for one in re.split(r"[:：;；]\s", sentence) if dialogue.cues.has("hindered", one)]
                if parts and not is_question(sentence) and len(stems(parts[0])) >= 2:
                    yield OutcomeItem("blocker", parts[0], report.message.line + passage.line, report.place, "prose")


def prose_statements(dialogue: Dialogue, found: list[ResultsReport]) -> Iterator[OutcomeItem]:
    """Yields statements outside known sections: of late reports, and decisions from all of the assistant's messages."""
    late = frozenset(report.place for report in found if report.late)
    left = _CHOICES
    for place, _ in reversed(dialogue.assistants[-_WAY:]):
        for sentence, line in () if place in late or left < 0 else dialogue.sentences_of(place)[:_SAID]:
            if (_SELF.match(sentence) or dialogue.cues.has("choice", sentence)) and not PLANS.search(sentence):
                left -= 1
                said = SentenceContext(sentence, report=True)
                if kind_by_rules(said, dialogue.cues) == "decision" and len(stems(sentence)) > 1:
                    yield OutcomeItem("decision", sentence, line, place, "choice")
    for report in found:
        if not report.late:
            continue
        for passage in report.read:
            label = dialogue.cues.kind_of(passage.label)
            if passage.form in ("heading", "row") or passage.struck or label == "plan" or label in _OF_LABEL:
                continue
            before = ""
            for sentence in split(passage.text):
                said = SentenceContext(sentence, report=True)
                kind = None if _ACKS.match(sentence) else kind_by_rules(said, dialogue.cues)
                if (
                    kind
                    and not (kind == "next" and _no_step(sentence))
                    and not (passage.mark == "done" and kind in ("next", "blocker"))
                ):
                    whole = f"{before} {sentence}" if before and POINTS_BACK.match(sentence) else sentence
                    for text in _parts(sentence) if kind == "next" else [whole]:
                        yield OutcomeItem(kind, text, report.message.line + passage.line, report.place, "prose")
                before = sentence


_WAY, _SAID = 1_000, 20  # messages before the report, and sentences of each
# Before the report the assistant says what it does, including choices.
_SELF = late(
    r"(?:so )?(?:i|i['’]m|i['’]ve|i['’]d|we|ich|wir|je|j['’]\w+|on|lo|la|he|eu|ho|uso|я|мы)\b(?![.,])|我|我们",
    re.IGNORECASE,
)
# How the assistant confirms a request, which it only repeats.
_ACKS = late(
    r"(?:understood|noted|will do|got it|verstanden|notiert|alles klar|compris|c['’]est noté|noté|entendido|anotado"
    r"|capito|понял\w*|принято|明白|收到|了解|承知|알겠습니다)(?!\w)",
    re.IGNORECASE,
)
# "I have not started on either": only the sentence before says on what.
_OF_THOSE = late(r"^(?:I|we|We|[Ii]ch|[Ww]ir)\b.{0,80}\b(?:either|neither|both|them|those|it|that|this|one)[.!]?$")
# That something is not committed is a state, not a next step.
_COMMIT = late(r"\bcommit", re.IGNORECASE)


def _no_step(sentence: str) -> bool:
    return _OF_THOSE.search(sentence) is not None or _COMMIT.search(sentence) is not None


# "What remains is to ask the laboratory, and to add a check": the announcement, and each thing to do.
_TO_DO = late(
    r"^(?P<lead>.{0,80}?\b(?:(?:remains?|left|is|still|yet|need|have) (?=to )|reste(?:nt)? (?=à )"
    r"|falta(?:n|m)? |queda(?:n)? por |resta(?:no)? (?=da )|bleibt noch |осталось ))(?P<rest>.+)$",
    re.IGNORECASE,
)
_AND_TO = late(
    r"(?:,\s++|(?<![\s,])\s++)(?:and|et|y|e|ed|и|und|sowie)\s+(?=(?:to|à|da|zu)\s|\w+(?:ar|er|ir|are|ere|ire|ть)\b)",
    re.IGNORECASE,
)


def _parts(sentence: str) -> list[str]:
    """Splits a sentence that names several things to do."""
    announced = _TO_DO.match(sentence)
    if announced is None:
        return [sentence]
    parts = [re.sub(r"^(?:to|à|da)\s+", "", part).rstrip(" .") for part in _AND_TO.split(announced["rest"])]
    return parts if all(len(stems(part)) >= 2 for part in parts) else [sentence]
