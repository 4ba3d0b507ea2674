"""Classifies a sentence by rules: decision, constraint, preference, next step or blocker, by words and context."""

from __future__ import annotations

import re
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import Caseless, late
from signet_sync.text.digest.conversation import Kind
from signet_sync.text.digest.cues import Cues, any_of
from signet_sync.text.digest.sentences import IS_CJK, is_question, stems, unquoted


class SentenceContext(NamedTuple):
    """A sentence with the context that determines its kind.

    By the person: `first` in the session's first turn, `reply` after a question or proposal (`previous` is the
    assistant's message), `facts` after a question for a fact (`whether`: one of yes or no), `opens` as first sentence
    of its turn, `closing` after the report, `command` is the command run just before. By the assistant: `report` within
    a report.
    """

    sentence: str
    first: bool = False
    reply: bool = False
    facts: bool = False
    whether: bool = False
    opens: bool = False
    closing: bool = False
    report: bool = False
    previous: str = ""
    command: str = ""


_ACK = late(
    r"^(?:\[[^\]]{1,40}\]|(?:no|nope|nah|nein|non|não|нет|いえ|아니요?)(?=\s*[,.!;:–—]|$)|ok(?:ay)?|yes|yep|yeah"
    r"|looks? good|lgtm|good catch|makes sense|sounds good|got it|fair(?: enough)?|i agree|agreed|one more thing|btw"
    r"|nah|nice|good|great|perfect|thanks?|thank you|thx|cool|right|sure|hm+"
    r"|ah|oh|well|and|also|but|so|ja|gut|danke|super|und|aber|oui|merci|et|mais|sí|si|vale|gracias|y|pero|sim"
    r"|mas|va bene|però|да|спасибо|и|но|好的?|嗯|はい|ありがとうございます|네)(?!\w)[\s,.!;:–—-]*",
    re.IGNORECASE,
)
_WISH = late(
    r"^(?:can|could|would|will) you\b|^(?:pls|please)\b|^(?:kannst|könntest|würdest) du\b|^(?:peux|pourrais)-tu\b"
    r"|^puedes\b|^pode\b|^puoi\b",
    re.IGNORECASE,
)
# An order for the next minute, which does not determine the outcome.
_ERRAND = late(
    r"^(?:(?:then|now|and|please|pls|also|just|ok|can you|could you)\s+)*(?:commit|push|run|show|test"
    r"|check|look|find|fix"
    r"|open|print|explain|tell|try|start|continue|go on|go ahead|proceed|rerun|deploy|merge"
    r"|ship(?: it)?[.!]?$|write|create|add|do the"
    r"|have a|give|list|read|review|search|investigate|figure|debug|see|let me|not sure|looking|checking"
    r"|reading|one sec|just a|hold on$|both (?:look|are|work|seem)|dunno|no idea|i don['’]?t know"
    r"|put .{2,40} (?:in|into) (?:an? )?(?:issue|ticket|changelog|release notes|readme|docs)"
    r"|use the (?:file|one|log) i|file an?|tag it|git"
    r"|mach weiter|zeig|prüf|schau|commite|montre|continue|lance|regarde|muestra|sigue|mira|mostra|continua|rode"
    r"|покажи|запусти|проверь|продолжай|看看|跑一下|提交|继续|見せて|実行して|続けて|コミットして|보여"
    r"|실행해|계속)(?!\w)",
    re.IGNORECASE,
)
ORDERS = late(
    r"^(?:please\s+)?(?:fix|use|take|make|keep|put|move|store|write|add|do|go|set|drop|remove|rename|split"
    r"|change|return"
    r"|let|leave|handle|log|cache|throw|raise|show|send|call|read|load)\b",
    re.IGNORECASE,
)
# A sentence with this beginning refers to the one before.
POINTS_BACK = late(
    r"^(?:its|thats|theyre|i (?:think|guess|believe) (?:it|that|they|he|she)|it|this|that|they|these|those"
    r"|he|she|es|das|dies\w*|sie|il|elle|ils|ce|cela|ça|esto|eso|lo|la"
    r"|los|las|isso|isto|ela|ele"
    r"|ciò|quest[oaie]|quell[oaie]|это|он[аои]?|它|这|那|これ|それ|그것|이것)(?=['’\s,])|^(?:它|这|那|これ|それ)",
    re.IGNORECASE,
)
# "las tiene que crear el proveedor": only the sentence before names what has to be made.
_OBJECT = late(r"^(?:la|las|lo|los|le|les|li|gli|os|as)\s", re.IGNORECASE)
_CLAUSE = late(r"(?<!\s)\s*+(?:[,;，；、]|(?<=\s)[–—-]\s)\s*+")


def bare(sentence: str) -> str:
    """Drops "ok, yes, and" from the beginning of a sentence."""
    for _ in range(3):
        shorter = _ACK.sub("", sentence)
        if shorter == sentence or not shorter:
            break
        sentence = shorter
    return sentence.strip()


def is_ack(text: str) -> bool:
    """Returns whether a text is only an "ok, makes sense"."""
    found = _ACK.match(text)
    return found is not None and found.end() == len(text)


def is_errand(text: str) -> bool:
    """Returns whether a sentence orders only something immediate: to run, show, commit."""
    return _ERRAND.match(text) is not None


def is_inquiry(sentence: str) -> bool:
    """Returns whether a sentence asks without requesting anything: "can you keep it?" is no inquiry."""
    text = unquoted(bare(sentence) or sentence)
    return (is_question(sentence) or _ASKS.search(text) is not None) and not _WISH.match(text)


def kind_by_rules(said: SentenceContext, cues: Cues) -> Kind | None:
    """Returns the kind of a sentence by the rules alone; None if it is not worth keeping."""
    return _of_report(said, cues) if said.report else _of_person(said, cues)


def _of_person(said: SentenceContext, cues: Cues) -> Kind | None:
    text = unquoted(bare(said.sentence) or said.sentence)
    if is_inquiry(said.sentence):
        return None
    kind = _lasting(said, text, cues)
    if kind is None and len(text) <= 300 and cues.has("choice", text) and not _SUPPOSES.search(text[:40]):
        return "decision"
    if kind or said.first:
        if said.first and kind is None and _SWITCH.search(text) and cues.has("correction", text):
            return "decision"
        return kind
    if said.closing:
        if PUT_OFF.search(text):
            return "next"
        if any(cues.has(kind, text) for kind in ("blocked", "awaits")):
            return "blocker"
        if cues.has("later", text):
            plans = len(stems(text)) >= 2 and not _ARRIVES.search(text) and not _PARTS.search(text)
            return "next" if plans else None
        if cues.has("no", said.sentence) and len(stems(text)) < 2:
            return None
    if (
        (said.closing and cues.has("stop", text))
        or is_ack(text)
        or len(stems(text) - _INTERJECTIONS) < 1
        or _is_news(text)
        or cues.has("mode", text)
        or (cues.has("later", text) and len(stems(text)) < 4)
    ):
        return None
    if said.reply and on_topic(text, said.previous):
        return "decision"
    if (is_errand(text) and not _REPLACES.search(text)) or _OBSERVES.match(text) or _SEES.search(text):
        return None
    if cues.has("correction", text):
        return "decision"
    if not (said.reply and said.opens) or POINTS_BACK.match(text):
        return None
    if any(cues.has(kind, text) for kind in ("blocked", "awaits", "asks")):
        return None
    if said.facts and not (said.whether and len(stems(text)) >= _MANY_WORDS):
        return None
    return "decision"


# A question without its mark: "wait, what does that mean".
_ASKS = any_of([r"(?:^|, )(?:what|why|how|which|who) (?:does|is|do|did|are|was|were|not|about|if)\b"])
# Without content if nothing else is said: "wait no!".
_INTERJECTIONS = stems("wait sorry never mind hmm scratch please moment espera aspetta attends")
# An answer to a question for a fact that has so many words chooses something; "chapter 7" only informs.
_MANY_WORDS = 4
_REPLACES = any_of([r"\binstead\b|\brather than\b|\bstatt(?:dessen)?\b|\bau lieu d|\ben vez de\b|\bem vez de\b"])
# What has just happened is not a choice: "ops just turned it on", "plugged in now".
_NEWS = any_of(
    [
        r"\bjust (?:now )?(?:\w+ed|wrote|said|told|got|heard|came|went|saw|sent|found|made|ran|bought|left)\b"
        r"|^(?:\w+ ){0,2}\w+ed(?: \w+){0,2} (?:now|already)[.!]?$"
        r"|\b(?:hat|haben|habe) (?:gerade|eben|soeben)\b|\b(?:vient|viennent|viens) d|\bacab(?:a|an|o|ou|aram) de\b"
        r"|\b(?:ha|hanno|ho) appena\b|только что|刚刚|刚才|たった今|ところです|방금"
    ]
)
_OBSERVES = late(
    r"^(?:(?:now|still|and|but|hm+|oh) )*(?:it|this|that|they|there|i|the \w+(?: \w+)?) (?:(?:now|still|also|always) )*"
    r"(?:fail\w*|crash\w*|errors?|return(?:s|ed)|shows?|showed|prints?|printed|says|said|gives?|gave|gets?"
    r"|got|hangs?|hung|breaks?"
    r"|broke|happen\w*|takes?|took|looks?|seems?|worked|ran|restarted|tried|pulled|checked|saw|see|found)\b",
    re.IGNORECASE,
)
_SEES = any_of(
    [
        r"\b(?:i|we) (?:still |now |only )?(?:get|see|got|saw)\b|\bsame (?:thing|error|problem|result|here)\b"
        r"|\bwrong (?:window|chat|tab|session|project)\b|\bthat['’]?s (?:weird|odd|strange|interesting"
        r"|funny)\b|^jetzt (?:kommt|kommen|ist|sind|geht)\b|\bimmer noch\b"
        r"|\btoujours (?:pareil|l[ea] même)\b|\bbizarre\b|\bsigue (?:fallando|igual)\b|\bmismo error\b"
        r"|\bmesmo erro\b"
        r"|\bstesso errore\b|\bstrano\b|^теперь\b|та же|вс[её] равно|还是报|同样的|奇怪|同じエラー"
        r"|変わりません|おかしい|똑같|여전히"
    ]
)
# Words of parting plan nothing: "have a nice weekend", "see you tomorrow".
_PARTS = Caseless(
    r"\b(?:have an?|enjoy (?:the|your)|see you|talk (?:to you )?(?:tomorrow|later|soon)|bye|schöne[ns]?"
    r"|bis (?:morgen|später|dann)"
    r"|bon(?:ne)? (?:week|soirée|journée)|à (?:demain|plus)|buen|hasta (?:mañana|luego)|buon|a domani|bom "
    r"|até (?:amanhã|logo))"
    r"|до завтра|хороших|明天见|周末愉快|また明日|良い週末|내일 (?:봐|뵙)"
)
_TOPIC = late(r"^([\w./ -]{2,30}?)\s?[:：]\s*(?=\S)")


def _is_news(text: str) -> bool:
    """Returns whether a sentence only reports what has just happened; text after a colon is not part of that."""
    found = _NEWS.search(text)
    return found is not None and not re.search(r"[:：]\s", text[found.end() :])


def on_topic(text: str, previous: str) -> bool:
    """Returns whether a reply settles a point of the message before, by its name: "slugs: write the function"."""
    topic = _TOPIC.match(text)
    return topic is not None and bool(stems(topic[1])) and stems(topic[1]) <= stems(previous[-1_000:])


# What the person postpones is not a blocker; what is already on its way is not a next step.
PUT_OFF = Caseless(
    r"\b(?:do not|don['’]?t|not) (?:commit|merge|push|deploy|ship|release)\w*\b.{0,40}\b(?:yet|until|till|before)\b"
    r"|\bnoch nicht (?:commit|merge|push|deploy|ausroll|veröffentlich)\w*|\bpas encore (?:committ|pouss"
    r"|déploy|fusionn)\w*"
    r"|\b(?:todavía|aún|ainda) (?:no|não) (?:hag|commit|subas|suba|publi)\w*|\bnon ancora\b|ещ[её] не (?:комм|пуш|мерж)"
    r"|先(?:别|不要)(?:提交|合并|推送|上线)|まだ(?:コミット|マージ|プッシュ)しないで|아직 (?:커밋|머지|푸시)하지"
)
_ARRIVES = Caseless(
    r"\b(?:arrives?|is due|comes in|gets here|kommt|llega|chega|arrive|arriva|приход\w+|прид[её]т)\b|到货"
    r"|届く|届き|도착"
)
_SWITCH = Caseless(r"\b(?:switch|drop|replace)\b.{1,80}\b(?:to|by|with|for)\b")


def _lasting(said: SentenceContext, text: str, cues: Cues) -> Kind | None:
    """Returns preference or constraint for a sentence that holds beyond this moment."""
    if cues.has("habit", text) or cues.has("manner", text):
        return "preference"
    if cues.has("mode", text):
        return None
    if said.closing and cues.has("medium", text) and cues.has("general", text) and not cues.has("blocked", text):
        return "preference"
    stops = said.closing and cues.has("stop", text)
    if cues.has("bound", text) and not stops:
        answers = said.reply and said.opens and not said.closing
        if answers and (_THEN.search(text) or (_STAYS.search(text) and not _STRICT.search(text[4:]))):
            return "decision"
        if _replaces(text, cues):
            return None if said.first else "decision"
        return "preference" if said.command and _names_program(text, said.command) else "constraint"
    if not (said.first or said.closing or stops) and cues.has("duty", text) and not _OBJECT.match(text):
        return "constraint"
    return None


# Answers that say how something shall behave: "points stay in the region where they were earned".
_THEN = late(r"\bthen[.!]?$", re.IGNORECASE)
_STAYS = late(
    r"^leave (?:it|them|that|those)\b|\bstays? (?:in|on|at|where|with)\b|\bbleib\w* (?:in|bei|auf)\b", re.IGNORECASE
)
_STRICT = late(
    r"\b(?:must|never|cannot|can['’]?t|only|no|not|don['’]?t|ha(?:s|ve) to|needs? to|rule|nicht|kein\w*|nur|muss)\b",
    re.IGNORECASE,
)


def _replaces(text: str, cues: Cues) -> bool:
    """Returns whether a sentence says what to do, and what not only in addition: "fix the hook, don't add a sleep"."""
    parts = _CLAUSE.split(text, maxsplit=1)
    if len(parts) < 2:
        return False
    head, tail = parts
    return (
        (
            ORDERS.match(head) is not None
            or (IS_CJK.search(head) is not None and cues.has("correction", head) and not cues.has("duty", head))
        )
        and len(stems(head)) >= 1
        and not cues.has("bound", head)
        and cues.has("bound", tail)
    )


def _names_program(text: str, command: str) -> bool:
    """Returns whether a sentence names the program that was just run: it says how to work, and limits nothing."""
    programs = {part.strip().split(" ")[0] for part in re.split(r"&&|\|\||;|\|", command)[:20]}
    return any(
        1 < len(name) < 40 and re.search(rf"\b(?:use|run|call|with)\b[^.]*\b{re.escape(name)}\b", text, re.IGNORECASE)
        for name in programs
    )


def _of_report(said: SentenceContext, cues: Cues) -> Kind | None:
    text = unquoted(said.sentence)
    if is_question(text) or cues.has("offer", text) or _IF.match(text):
        return None
    if not cues.has("changed", text):
        if cues.has("blocked", text):
            return "blocker"
        if cues.has("left", text):
            return "next"
    return "decision" if len(text) <= 300 and cues.has("choice", text) and not _SUPPOSES.search(text[:40]) else None


_IF = late(r"^(?:if|wenn|falls|si|se|если|如果)\b|^如果", re.IGNORECASE)
_SUPPOSES = Caseless(r"\bif\b|\bwould\b|\bcould\b|\bwürde\b")
