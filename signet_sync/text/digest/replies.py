"""Completes a short reply with what it answers, so that the statement can be understood alone."""

from __future__ import annotations

import re
from functools import lru_cache

from signet_sync.formats.lazy_pattern import Caseless, late
from signet_sync.text.digest.cues import any_of
from signet_sync.text.digest.sentences import is_question, sentences, split, stems
from signet_sync.text.digest.statements import bare

_PICK = late(
    r"^(?:i think |i['’]d say |probably )?(?:(?:let['’]?s (?:do|go with|take)|go with|use|take|i(?:['’]d"
    r"| would) (?:go with|take)|option|variant|variante|opci[oó]n"
    r"|opção|opzione|вариант|方案|案|オプション|choose|nimm|die|der|das|la|le|el|il|a|the)\s*)*"
    r"[#(]?(?P<pick>\d|(?:middle|last|letzte[nrs]?|dernière?|última|ultima|последн\w+|最后|最後)|[a-e]"
    r"|[一二三四]|(?:first|second|third|former|latter|erste|zweite|dritte|premi[eè]re?|deuxi[eè]me"
    r"|seconde?|primera|segunda|tercera|primeira|terceira|prima|seconda|terza|перв\w+|втор\w+|трет\w+|두 번째"
    r"|첫 번째|첫째|둘째))\)?"
    r"(?: one| option| variant| вариант)?(?:つ目|番目?|个|个吧)?(?:の方)?(?:로|で)?(?=で|$|[\s.,;:!)。，、])",
    re.IGNORECASE,
)
_EAST_PICK = late(
    r"^(?:用|选|選)?第?(?P<pick>[一二三四\d])(?:つ目|番目?|个|種)|^(?:用|选)?(?:方案"
    r"|案)\s*(?P<name>[一二三四\dA-Ea-e])|^案(?P<letter>[A-Ea-e])"
)
_ORDINALS = (
    ("first", "former", "erste", "premi", "primera", "primeira", "prima", "перв", "첫", "一"),
    ("second", "latter", "zweite", "deuxi", "segunda", "seconda", "втор", "두 번째", "둘째", "二"),
    ("third", "dritte", "tercera", "terceira", "terza", "трет", "三"),
    ("四",),
)
_POLITE = late(
    r"(?:please|pls|bitte|s['’]il te plaît|stp|por favor|per favore|пожалуйста|吧|(?:で)?お願いします"
    r"|に?して(?:ください)?"
    r"|がいい(?:です)?|です|로? ?해 ?주세요|로? ?하죠|요)?[\s.!。！]*$",
    re.IGNORECASE,
)
_OPTION = late(
    r"^([ \t]{0,20})(?:[-*+]\s+)?(?:\*\*)?(?:option\s+|variante?\s+|opci[oó]n\s+|opção\s+|opzione\s+"
    r"|вариант\s+|方案\s*|案\s*)?"
    r"\(?([1-9a-eA-E一二三四])[.):、：](?:\*\*)?\s*(\S.{0,400})$",
    re.IGNORECASE,
)
_INLINE_OPTION = late(
    r"([1-4a-d])\)(?:(?<=[\s(]..)|(?<=^..))\s{0,3}([^()]{4,160}?)"
    r"(?=[,;]?\s{0,3}(?:(?:or|oder|and|ou|o|и|или)\s+)?\(?[1-4a-d]\)|[.?]|$)",
    re.MULTILINE,
)
# "Three ways: trust the scores, a bound per match, or review by hand."
_LISTS = late(
    r"\b(?:ways?|options?|choices?|alternatives?|remed(?:y|ies)|possibilit\w+|proposals?|approach\w*|candidates?|ideas?"
    r"|möglichkeiten|wege|varianten|optionen|vorschläge|façons|pistes|solutions|formas|opciones|maneras|caminos|opções"
    r"|modi|opzioni|soluzioni|варианта?|способа?)\b[^:.?!\n]{0,40}$",
    re.IGNORECASE,
)
_LISTED = late(r"(?P<list>[^:.?!\n]{8,300}?),?\s(?:or|oder|ou|o|или)\s(?P<last>[^.?!\n]{3,160})", re.IGNORECASE)
_MIDDLE = ("middle",)
_LAST = ("last", "letzte", "derni", "última", "ultima", "последн", "最后", "最後")
_EITHER = Caseless(
    r"\b(?=[eso])(?:either|entweder|soit|ou bien)\s(?P<one>[^.?!]{4,160}?),?\s(?:or|oder|soit"
    r"|ou bien)\s(?P<other>[^.?!]{4,200})"
)
_PROPOSES = any_of(
    [
        r"\bi(?:['’]d| would) (?!not\b|say\b|guess\b|need\b|be (?:happy|glad)|love\b|like to know)\w+"
        r"|\bi (?:suggest|propose|recommend)\b|\bi can\b"
        r"|\bmy (?:suggestion|recommendation|proposal)\b"
        r"|\bich würde\b|\bich schlage\b|\bmein vorschlag\b|\bje propose\b|\bje (?:mettrais|ferais|prendrais"
        r"|suggère)\b|\bpropongo\b"
        r"|\byo (?:usaría|haría|pondría)\b|\bsugiero\b|\bsugiro\b|\beu (?:usaria|faria|colocaria)\b"
        r"|\bproporrei\b|\bmetterei\b|\bя бы\b"
        r"|\bпредлагаю\b|\bcould\b.{3,120}\bor\b|\bon pourrait\b|\b(?:könnte man|man könnte"
        r"|wir könnten)\b|\bse podría\b|\bpodríamos\b"
        r"|\bpoderíamos\b|\bsi potrebbe\b|\bpotremmo\b|можно .{3,80} или |可以.{2,80}(?:或者|也可以)"
        r"|建议|我会用|提案|と思います|がよいと|추천|제안"
    ]
)
# A proposal of the immediate next step decides nothing.
_NEXT_STEP = late(
    r"\bi(?:['’]d| would)(?: now| then| next| first)? (?:run|test|check|look|commit|push|start|continue"
    r"|rerun|measure|verify|fix"
    r"|review|merge|deploy|investigate|wait|begin|do the)\b|\bnext i\b",
    re.IGNORECASE,
)
_POINTS_BACK = late(
    r"\b(?:do|doing) (?:that|this|so|it|both)\b|^(?:that|this|it|so|both)\b|\b(?:das|es) (?:so )?(?:machen"
    r"|tun)\b|^(?:das|es)\b",
    re.IGNORECASE,
)
_WHICH = late(
    r"\b(?:how|where|when|what|wie|wo|wann|combien|où|quand|comment|cuánt\w*|cómo|dónde|cuándo"
    r"|quant[oai]s?|onde|quando|dove"
    r"|come|сколько|где|когда|как)\b|多少|多久|哪里|何|どこ|いつ|얼마|어디|언제",
    re.IGNORECASE,
)
EITHER_OR = late(r"\b(?:or|oder|ou|o|или|eller)\b|还是|それとも|아니면", re.IGNORECASE)
_NAMED = 6  # most stems of a reply that may be an option's name
_SHORT = 3  # stems; a reply with fewer cannot be understood alone
_PLANS = late(
    r"^(?:i['’]?(?:ll| will|m)|let me|ich (?:werde|schaue|rechne)|je vais|voy a|vou|sto|смотрю|我来|まず)\b"
    r"|\bnext\b|^(?:noted|understood|ok|sure|done|fixing|looking|on it)\b[^:]{0,20}$",
    re.IGNORECASE,
)


# Words for what the assistant is about to do, or would do.
PLANS = any_of(
    [
        r"\bi(?:['’]ll| will|['’]m going to|['’]d| would| could| can)\b|\bi (?:suggest|propose|recommend)\b|\blet me\b"
        r"|\bich (?:werde|würde|kann|könnte|schlage)\b|\bje (?:vais|propose|peux|pourrais)\b|\bje (?:ferais|mettrais|prendrais)\b"
        r"|\b(?:voy a|propongo|sugiero|puedo|podría|usaría|haría)\b|\b(?:vou|proponho|sugiro|posso|poderia)\b"
        r"|\b(?:sto per|propongo|posso|potrei|proporrei)\b|\bя бы\b|\bпредлагаю\b|\bмогу\b|我会|我来|建议|可以|ます[か。]?$|と思います|제안|겠습니다"
    ]
)


def asks(text: str) -> bool:
    """Returns whether a message ends by asking for a choice or proposing one."""
    return any(is_question(one) or _PROPOSES.search(one) or _chooses(one) for one in _ending(text)[-3:])


def _chooses(text: str) -> re.Match[str] | None:
    """Finds "either this or that" in a text."""
    low = text.lower()
    found = not text.isascii() or any(word in low for word in ("either", "entweder", "soit", "ou bien"))
    return _EITHER.search(text) if found else None


@lru_cache(maxsize=16)
def _ending(text: str) -> tuple[str, ...]:
    """Returns the last sentences of a message."""
    return tuple(split(" ".join(text.rstrip()[-600:].split())))


def asks_for_fact(text: str) -> tuple[bool, bool]:
    """Returns whether a message ends by asking for a fact, and whether for yes or no: "does the sheet cover it?"."""
    lines = reversed(text.rstrip()[-600:].split("\n"))
    question = next((one for line in lines for one in reversed(split(line)) if is_question(one)), "")
    clause = re.split(r"[;,:]\s", question)[-1]
    if EITHER_OR.search(question, 2) or _DECIDES.search(clause):
        return False, False
    whether = _FACT.match(clause) is not None or _BY_NOW.search(clause) is not None
    return whether or _FACTS.match(clause) is not None, whether


# Questions for what or where something is or was; not for what it should be.
_FACTS = late(
    r"(?:and |so |but )?(?:where|which|what|who|when|since when|how (?:many|much|often|long|old|big"
    r"|large))\b(?: \w+){0,2}"
    r" (?:is|are|was|were|did|has|have|does|do you (?:know|see|use|run|have))\b"
    r"|(?:can|could) you\b|do you know\b"
    r"|(?:welche \w+|was für \w+) (?:nutzt|benutzt|verwendest|hast)\b|quelle? \w+(?: de \w+)? (?:utilises|as|est)\b"
    r"|¿?qué \w+(?: de \w+)? (?:usas|tienes|es)\b|(?:que|qual) \w+(?: d\w+ \w+)? (?:usa|tem|é)\b|(?:che"
    r"|quale) \w+(?: di \w+)? (?:usi|usa|hai|è)\b"
    r"|как(?:ая|ой|ую) \w+ (?:у|сто|использ)"
    r"|(?:wo|seit wann|welche \w+|wie viele \w+|wer) (?:ist|sind|liegt|läuft|hat|war|steht)\b|où (?:est|sont"
    r"|se trouve)\b"
    r"|depuis quand\b|¿?(?:dónde|desde cuándo|quién) \w+|onde (?:está|fica|é)\b|desde quando\b|dov['’]è\b"
    r"|da quando\b|где (?:лежит|находится|стоит)|с каких пор|.{0,20}(?:在哪|是什么版本|什么时候开始)"
    r"|いつから|どこに(?:あり|ある)"
    r"|언제부터|어디에? 있",
    re.IGNORECASE,
)
_BY_NOW = late(
    r"\b(?:already|still|yet|schon|noch|déjà|encore|ya|todavía|já|ainda|già|ancora)\b|уже|ещ[её]|已经|还在"
    r"|もう|まだ|이미|아직",
    re.IGNORECASE,
)
_DECIDES = late(
    r"\b(?:should|shall|may|must|want|prefer|would|allowed|ok(?:ay)?|fine|enough|keep|limit|maximum|minimum"
    r"|soll\w*|darf|dürfen"
    r"|doit|faut|debe\w*|deve|devono|part of)\b|должн|нужно|应该|要不要|べき|좋을",
    re.IGNORECASE,
)
_FACT = late(
    r"(?:and |so |but )?(?:is|are|was|were|does|did|has|have|do) (?!(?:you|we) (?:want|prefer|need|like|wish)\b)"
    r"|(?:ist|sind|war|hat|haben|gibt es|läuft|liegt) |(?:est-ce que|y a-t-il|est-il|est-elle) |¿?(?:está"
    r"|están|hay|es|son|tiene) "
    r"|(?:é|está|há|tem) |(?:è|c['’]è|ci sono|ha|hanno) ",
    re.IGNORECASE,
)


def chosen_option(sentence: str, previous: str) -> tuple[str, str]:
    """Returns the option that a reply chooses, and what it adds; empty if it chooses none."""
    reply = bare(sentence)
    pick = _EAST_PICK.match(reply) or _PICK.match(reply)
    options = _options(previous) if pick or len(stems(reply)) <= _NAMED else []
    if not options:
        return "", ""
    if pick is None:
        named = [said for _, said in options if stems(reply) & stems(said)]
        best = max((len(stems(reply) & stems(said)) for said in named), default=0)
        named = [said for said in named if len(stems(reply) & stems(said)) == best]
        return (_unmarked(named[0]), "") if len(named) == 1 and best == len(stems(reply)) else ("", "")
    name = next(filter(None, pick.groupdict().values()), "").lower()
    number = (
        int(name) if name.isdigit() else next((n for n, words in enumerate(_ORDINALS, 1) if name.startswith(words)), 0)
    )
    if not number and name.startswith(_MIDDLE):
        number = (len(options) + 1) // 2
    elif not number and name.startswith(_LAST):
        number = len(options)
    said = next((text for key, text in options if key == name or key == str(number)), "")
    if not said and 0 < number <= len(options):
        said = options[number - 1][1]
    added = reply[pick.end() :].strip(" .,;:!-–—。，")
    return (_unmarked(said), "" if _POLITE.match(added) else added) if said else ("", "")


# "I would take 7 retries": once it is accepted it is no proposal any more.
_BY_ME = late(
    r"^(?:(?:so|then|ok(?:ay)?),? )?(?:I would|I['’]d|we could|let['’]s)\s+(?:rather |just |then )?(?=(?:take|use|keep|make|set"
    r"|add|drop|move|put|go with|start|store|write|run|split|leave|switch|cap|limit|raise|lower|name|call|do)\s)",
    re.IGNORECASE,
)


def proposal(text: str) -> str | None:
    """Returns the last sentence that proposes something, after the one before if it refers to that.

    Empty if it proposes only the immediate next step, None if nothing is proposed.
    """
    parts = [(one, is_question(one)) for one, _ in sentences(text)]
    for at in range(len(parts) - 1, -1, -1):
        one, question = parts[at]
        if question or not _PROPOSES.search(one):
            continue
        if _NEXT_STEP.search(one):
            return ""
        if _POINTS_BACK.search(one) and at and not parts[at - 1][1]:
            one = f"{parts[at - 1][0]} {one}"
        return _unmarked(_BY_ME.sub("", one))
    return None


def completed(reply: str, previous: str, following: str) -> str:
    """Completes a reply too short to be understood alone: by the assistant's confirmation, else by the question.

    The reply is returned as it is if neither helps.
    """
    if len(stems(reply)) >= _SHORT:
        return reply
    question = question_of(previous)
    for sentence, _ in list(sentences(following[:400]))[:2] if len(following) < 600 else []:
        if is_question(sentence) or _PLANS.search(sentence):
            continue
        if stems(sentence) & (stems(reply) | stems(question)) and 2 <= len(stems(sentence)) <= 24:
            return _unmarked(_clause(sentence, stems(reply) | stems(question)))
    if question and _WHICH.search(question) and not EITHER_OR.search(question) and 2 <= len(stems(question)) <= 14:
        return f"{_unmarked(question.rstrip('?？ '))}: {reply}"
    return reply


def _clause(sentence: str, asked: frozenset[str]) -> str:
    """Returns the clause of a confirmation that answers the question; the whole sentence if that is not clear."""
    clauses = [one.strip() for one in re.split(r"[,;:：，；]\s*", sentence)]
    shared = [len(stems(one) & asked) for one in clauses]
    best = max(shared)
    at = shared.index(best)
    return clauses[at] if best >= 2 and shared.count(best) == 1 and len(stems(clauses[at])) >= 3 else sentence


def question_of(text: str) -> str:
    """Returns the last question of a message."""
    return next((one for one in reversed(_ending(text)) if is_question(one)), "")


def _options(text: str) -> list[tuple[str, str]]:
    """Returns the options of a message's last list: their names, and their texts."""
    lists: dict[int, list[tuple[str, str]]] = {}
    latest = -1
    for line in text.split("\n"):
        option = _OPTION.match(line[:500])
        if option is None:
            continue
        depth, name = len(option[1]), option[2].lower()
        if name in ("1", "a", "一") or depth not in lists:
            lists[depth] = []
            latest = depth
        lists[depth].append((name, option[3].strip()))
    end = text[-1200:]
    inline = [(name.lower(), said.strip(" ,;")) for name, said in _INLINE_OPTION.findall(end)]
    if lists and len(lists[latest]) >= min(2, len(inline)):
        return lists[latest]
    if inline:
        return inline
    for colon in re.finditer(r":\s", end):
        listed = (
            _LISTED.match(end, colon.end()) if _LISTS.search(end, max(0, colon.start() - 60), colon.start()) else None
        )
        if listed:
            named = [*re.split(r",\s+", listed["list"]), listed["last"]]
            return [(str(number), one.strip()) for number, one in enumerate(named, 1)]
    either = _EITHER.in_any.search(end) if _EITHER.search(end) else None
    return [("1", either["one"]), ("2", either["other"])] if either else []


def _unmarked(text: str) -> str:
    return re.sub(r"[*`]", "", text).strip().rstrip(".;:,。；：，")
