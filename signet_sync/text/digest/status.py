"""Derives the status of a session at its end: done, open, blocked, aborted, or only a question."""

from __future__ import annotations

import re
from collections.abc import Sequence

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest.conversation import Dialogue, OutcomeItem, Status
from signet_sync.text.digest.reports import ResultsReport, has_label
from signet_sync.text.digest.sentences import is_question, split, stems
from signet_sync.text.digest.statements import ORDERS, PUT_OFF, bare, is_errand
from signet_sync.text.digest.turns import ToolCall
from signet_sync.text.prompt import is_greeting

# Steps without which a task is not finished.
_MUST_FOLLOW = late(
    r"^(?:deploy|finish|complete|merge)\b|\b(?:the|run the) (?:other|remaining|rest)\b|\brest(?:liche"
    r"|lichen)\b|\bübrigen\b|\bles autres\b|\blos demás\b"
    r"|остальн|其余|剩下的|残りの|나머지",
    re.IGNORECASE,
)
# "What's left of the plan": the request is partly done.
_PART_LEFT = late(
    r"\b(?:left|remain\w*|rest|missing) (?:of|from|in) (?:the|this|that|our)\b|\b(?:vom|des) plans?\b"
    r"|\breste (?:du|de la)\b"
    r"|\b(?:del|do|dal) (?:plan|plano|piano)\b|\b(?:remaining|further|other) (?:phases|stages|parts|steps of)\b",
    re.IGNORECASE,
)
# What is still to do belongs to the task; what comes next may be another task.
_TO_DO = late(
    r"\W*(?:still |yet )?(?:to[- ]?do|pending|remaining|missing|unfinished|not finished|to finish)\b"
    r"|\W*(?:falta|pendiente|pendente|fehlt|manque|manca|не сделано|未完成|还差)",
    re.IGNORECASE,
)
_ASKING = late(
    r"^(?:just |please |pls )*(?:i (?:wonder|want to know|['’]d like to know)|(?:just )?curious|我想知道"
    r"|请问|想问|教えて|what|why|how|when|where|who|which|is|are|does|do|did|can|could|should|would|was|were|explain"
    r"|tell me|whats|hows|wie|was"
    r"|warum|wann|wo|wer|welche\w*|ist|sind|kann|comment|pourquoi|quel\w*|qu['’]|est-ce|cómo|por qué|qué"
    r"|cuál\w*|cuándo|como|por que"
    r"|o que|qual|come|perché|cosa|quale|как|почему|что|зачем|когда|где|какой"
    r"|怎么|为什么|什么|如何|是不是|どう|なぜ|何|어떻게|왜|무엇)",
    re.IGNORECASE,
)


def status_of(dialogue: Dialogue, stated: Sequence[OutcomeItem], found: Sequence[ResultsReport]) -> Status:
    """Returns the status at the end."""
    planned = any(item.kind in ("next", "blocker") and item.source == "section" for item in stated)
    if not (dialogue.edits or dialogue.commits or planned) and _only_asked(dialogue):
        return "question-only"
    if dialogue.interrupted >= max(0, dialogue.last_word, dialogue.last_edit):
        return "aborted"
    stopped = _stopped(dialogue)
    if stopped and not _reported(dialogue, found):
        return "aborted"
    if any(item.kind == "blocker" for item in stated):
        return "blocked"
    return "open" if _unfinished(dialogue, stated, found) else "done"


_FOR_NOW = late(
    r"\b(?:for now|later|tomorrow|continue|have to (?:go|leave|run)|gotta (?:go|run)|for today|muss (?:los"
    r"|weg)|morgen|später"
    r"|dois (?:filer|partir)|demain|tengo que irme|mañana|tenho que sair|amanhã|devo andare|domani)\b|пора"
    r"|завтра|明天|明日|내일",
    re.IGNORECASE,
)
_REPORTING = 6  # stems of a message that reports
_REPORTED = 16  # stems; an answer to "stop" with as many reports of work
_LAST_TURNS, _ORDERED = 2, 400  # of the person; characters of a turn that stops the work


def _stopped(dialogue: Dialogue) -> bool:
    """Returns whether one of the person's last turns orders to stop, and only clean-up followed."""
    for place, message in dialogue.users[-_LAST_TURNS:]:
        if place < max([-1, *dialogue.edits]) or len(message.text) > _ORDERED:
            continue
        behind = [one.text for at, one in dialogue.assistants if at > place]
        worked = any(len(stems(text)) >= _REPORTED and not dialogue.cues.has("stopped", text) for text in behind)
        was_reported = any(
            max(dialogue.last_edit, dialogue.last_run) < at < place and len(stems(one.text)) >= _REPORTING
            for at, one in dialogue.assistants[-4:]
        )
        said = [sentence for sentence, _ in dialogue.sentences_of(place)]
        orders = any(dialogue.cues.has("stop", one) and not (was_reported and _FOR_NOW.search(one)) for one in said)
        # A person who interrupted and gives up says why, and the assistant confirms that it stopped.
        ends = dialogue.interrupted == place - 1 and any(dialogue.cues.has("stopped", text) for text in behind[:1])
        # A person who leaves for today after a report stops nothing.
        if not worked and (orders or ends):
            return True
    return False


def _reported(dialogue: Dialogue, found: Sequence[ResultsReport]) -> bool:
    last = dialogue.users[-1][0]
    return any(dialogue.last_edit < one.place < last and has_label(dialogue.cues, one.message.text) for one in found)


def _unfinished(dialogue: Dialogue, stated: Sequence[OutcomeItem], found: Sequence[ResultsReport]) -> bool:
    listed = any(item.kind == "next" and item.source == "section" for item in stated)
    for report in found:
        if not report.late:
            continue
        marks = {passage.mark for passage in report.read}
        if "open" in marks or {"done", "failed"} <= marks:
            return True
        for passage in report.read:
            kind = dialogue.cues.kind_of(passage.label)
            if kind == "next" and (_PART_LEFT.search(passage.label) or (_TO_DO.match(passage.label) and listed)):
                return True
            if kind in ("next", "plan"):
                continue
            if passage.label and dialogue.cues.has("unfinished", passage.label):
                return True
            if any(dialogue.cues.has("unfinished", one) for one in split(passage.text) if not is_question(one)):
                return True
    request = dialogue.users[0][1].text[:400] if dialogue.users else ""
    if any(item.kind == "next" and PUT_OFF.search(item.text) for item in stated if item.source == "person"):
        return True
    return any(
        item.kind == "next" and (_MUST_FOLLOW.search(item.text) or _named(item.text, request)) for item in stated
    )


def _named(text: str, request: str) -> bool:
    """Returns whether a next step is part of the request: "rest: navigation, tables, pdf preview"."""
    parts = [part for part in re.split(r"[,:;]|\band\b|\bund\b", request)[1:] if len(stems(part)) >= 2]
    return any(stems(part) <= stems(text) for part in parts)


def _only_asked(dialogue: Dialogue) -> bool:
    """Returns whether nothing was to be done: only greetings, questions, and words between them."""
    if len(dialogue.runs) > 3:
        return False
    if is_trivial(dialogue):
        return True
    questions = 0
    for place, _ in dialogue.some_users:
        for sentence, _ in dialogue.sentences_of(place):
            said = bare(sentence)
            if is_question(sentence) or _ASKING.match(said):
                questions += 1
            elif dialogue.cues.has("mode", said):
                continue
            elif is_errand(said) or ORDERS.match(said):
                return False
    return questions > 0


def is_trivial(dialogue: Dialogue) -> bool:
    """Returns whether the person only greeted, and nothing was run."""
    ran = any(isinstance(turn, ToolCall) for turn in dialogue.turns)
    return not ran and bool(dialogue.users) and all(is_greeting(message.text) for _, message in dialogue.users)


def parting_words(dialogue: Dialogue) -> str:
    """Returns what the person said about a stopped session, besides the bare order to stop."""
    if not dialogue.users or len(dialogue.users) < 2:
        return ""
    said = [sentence for sentence, _ in dialogue.sentences_of(dialogue.users[-1][0]) if not is_question(sentence)]
    return next((one for one in said if len(stems(one)) >= 3), "")
