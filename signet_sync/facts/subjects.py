"""Finds what a statement gives a value to and what it retires, so that a later one can replace an earlier one.

The rules are narrow: two statements about different things must never have the same subject, so that a statement with a
condition, a question or a long subject has none. English first; German, Spanish, Russian, Chinese and Japanese by a few
forms each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from signet_sync.facts.subject_forms import FORMS
from signet_sync.formats.fact import Claim
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.word_forms import STOP_WORDS, base_of

LENGTH = 280
CLAIMS = 12
CLAUSES = 6
SUBJECT_WORDS, TERM_WORDS, CONTEXT_WORDS, AMOUNT_WORDS = 6, 3, 6, 10

# The first character of a subject says what is claimed of it, and by which claims it is replaced later.
NAMED, VALUED, PURPOSE, CHOSEN, RETIRED = ":=~+-"
REPLACED_BY = {NAMED: NAMED, VALUED: VALUED, PURPOSE: VALUED, CHOSEN: RETIRED, RETIRED: CHOSEN}

_FUNCTION_WORDS = frozenset(
    """
    now currently again instead anymore longer always exactly here today let's lets we'll every same both
    der die das den dem des ein eine einen einer eines unser unsere unseren für von vom im am an auf mit und jetzt nun
    ab sofort künftig immer wir nur mehr statt als
    el la los las un una unos unas de del para en por con al y nuestro nuestra ahora ya siempre
    для в на из с от к и по мы теперь сейчас больше всегда
    """.split()
)
_IGNORED = STOP_WORDS | _FUNCTION_WORDS
# A word that says nothing of what it stands for: with only these there is no subject.
_VAGUE = frozenset(
    """
    thing things way ways approach stuff idea option options plan one ones nothing anything everything something none
    result results total answer value number count it this that these those there part status state size problem
    issue reason point case code file files work change changes feature side user session sessions project
    """.split()
)
_PERSONAL = late(
    r"\b(?:i|we|you|he|she|they|it|this|that|these|those|there|who|which|what|why|how|because|since|so|but|if|nothing"
    r"|ich|wir|sie|es|dass|weil)\b",
    re.IGNORECASE,
)
_CONDITIONAL = late(
    r"\b(?:if|once|when|whenever|after|before|unless|until|till|whether|maybe|perhaps|could|might|may|consider|would|try"
    r"|not yet|later|todo|wenn|sobald|bis|falls|vielleicht|nachdem|si|cuando|hasta|quizás|если|когда|пока|может)\b"
    r"|[?？]|如果|等到|もし|たら",
    re.IGNORECASE,
)
_CHANGED = late(
    r"\b(?:now|from now on|instead|no longer|anymore|any more|actually|henceforth|going forward|as of today|jetzt|nun"
    r"|ab sofort|künftig|nicht mehr|stattdessen|ahora|ya no|a partir de ahora|теперь|больше не)\b"
    r"|现在|今后|从现在起|今後|現在",
    re.IGNORECASE,
)
_CLAUSE_END = late(r"(?:[.;!…](?=\s|$)|\s[–—→]\s|[。；！]|\n)")
_TOKEN = late(r"[^\W_](?:[\w./@#+'-]*[\w#+])?")
_CJK = late("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]")
# Where a term, a value or a subject ends.
_REST = late(
    r"\s*(?:[,(:]|[，、（：]|\s(?:because|since|as|so|but|which|that|who|and|to|by|with|instead|rather|than|weil|da|und|"
    r"porque|y|потому|и|anymore|any more|now|again|everywhere|completely|entirely|altogether|jetzt|ahora)\b)",
    re.IGNORECASE,
)
_CONTEXT = late(r"\s(?:for|in|on|as|at|within|inside|of|per|during|für|als|bei|im|para|en|для|в)\s+", re.IGNORECASE)

_KINDS = (
    frozenset(("on", "off", "true", "false", "enabled", "disabled", "an", "aus", "aktiviert", "deaktiviert")),
    frozenset(("required", "optional", "mandatory")),
    frozenset(("forbidden", "allowed")),
)
# At either end of a clause: that it is a change says nothing of the subject.
_MARK = late(
    r"^(?:from now on|as of (?:today|now)|henceforth|now|ab sofort|ab jetzt|jetzt|a partir de ahora|теперь"
    r"|今後は?|现在),?\s*"
    r"|,?\s+(?:from now on|going forward|as of (?:today|now)|now|any ?more|again|ab sofort|ab jetzt)$",
    re.IGNORECASE,
)
# The number of a clause that has one, and what it was before.
_FORMER_NUMBER = late(
    r"\s*\(?\b(?:instead of|rather than|not|was|statt|вместо)\s+[$€£]?\d[\d.,:]*\s?[^\W\d_]{0,8}\)?\s*$"
    r"|\bfrom\s+[$€£]?\d[\d.,:]*\s?[^\W\d_]{0,8}\s+(?=to\s+[$€£]?\d)",
    re.IGNORECASE,
)
_QUANTITY = late(
    r"(?<![\w#./:@-])[$€£~≈]?\d+(?:[.,:]\d+)*(?:\s?(?:%|ms|s|secs?|seconds?|mins?|minutes?|h|hours?|days?|weeks?|months?|years?"
    r"|[kmgt]i?b|sekunden?|minuten?|stunden?|tagen?|segundos?|minutos?|horas?|días?)(?!\w)|秒|分|日|天|小时)?(?![\w/#-])",
    re.IGNORECASE,
)
# Behind one of these a number is a name.
_NUMBERED = late(
    r"\b(?:phase|step|version|v|release|migration|milestone|sprint|issue|pr|mr|ticket|python|node|rule|section|chapter|case|"
    r"tenant|shard|region|line|row|week|day|schritt|zeile|paso)\s$",
    re.IGNORECASE,
)
_NAMED_NUMBER = late(r"\w\s[A-Z]\w*\s$")  # "Safari 17"
_PLAIN = frozenset(
    "the a an our we is are be will should must now only just to der die das ist sind el la los es son".split()
)
# Verbs with which no earlier decision is named by its own verb alone.
_PLAIN_VERBS = frozenset("use keep never always do don't make let add be have no only not please".split())


def claims(text: str, name: str | None = None) -> tuple[Claim, ...]:
    """Returns what a statement claims; `name` is the name in front of its colon, if it has one (`items.slot_of`).

    Deterministic and total; of a long text only the beginning counts.
    """
    said = text[:LENGTH]
    found: dict[str, Claim] = {}
    changed = _CHANGED.search(said) is not None
    if name is not None:
        value = said.partition(":" if ":" in said else "：")[2].strip()
        every = list(_of_name(name, value, changed))
    else:
        parts = _bare_clauses(said)
        every = [claim for clause in parts for claim in _of_clause(clause, changed)]
        if parts:
            every += _of_amount(parts[0], changed)
            every += _of_work(parts[0])
    for claim in every:
        found.setdefault(claim.subject, claim)
    return tuple(found.values())[:CLAIMS]


def clauses(text: str) -> list[str]:
    """Lists the first clauses of a statement."""
    return [part for part in (part.strip(" ,:") for part in _CLAUSE_END.split(text)[:CLAUSES]) if part]


def _bare_clauses(text: str) -> list[str]:
    """Lists the clauses of a statement, without what only says that it is a change."""
    return [part for part in (_MARK.sub("", part).strip(" ,:.!") for part in clauses(text)) if part]


def _of_name(name: str, value: str, changed: bool) -> Iterator[Claim]:
    """Yields the claims of `Name: value`."""
    subject = key(name, SUBJECT_WORDS) or name
    yield Claim(f"{NAMED}{name}", value.casefold(), changed)
    if len(value.split()) <= 4 and not _CONDITIONAL.search(value):
        yield Claim(f"{VALUED}{subject}{_kind(value)}", _same(value), changed)
    yield from _chosen(value, changed)


def _of_clause(clause: str, changed: bool) -> Iterator[Claim]:
    """Yields the claims of the first form that a clause has."""
    if _CONDITIONAL.search(clause):
        return
    words = {word.strip(",.:") for word in clause.casefold().split()}
    foreign = _CJK.search(clause) is not None
    for some, form in FORMS:
        match = form.match(clause) if (some & words if some else foreign) else None
        if match is not None:
            found = list(_of_match(match, changed))
            if found:
                yield from found
                return


def _of_amount(clause: str, changed: bool) -> Iterator[Claim]:
    """Yields the claim of a clause with one number, or one in front of its first comma: of all its other words."""
    if "?" in clause:
        return
    bare = _FORMER_NUMBER.sub(" ", clause)
    found = list(_QUANTITY.finditer(bare))
    if len(found) > 1:
        bare = _FORMER_NUMBER.sub(" ", clause.partition(", ")[0])
        found = list(_QUANTITY.finditer(bare))
    if len(found) != 1 or _NUMBERED.search(bare[: found[0].start()]) or _NAMED_NUMBER.search(bare[: found[0].start()]):
        return
    left = f"{bare[: found[0].start()]} {bare[found[0].end() :]}"
    words = [_stem(word) for word in map(str.casefold, _TOKEN.findall(left)) if word not in _PLAIN]
    if 2 <= len(words) <= AMOUNT_WORDS and any(word not in _IGNORED and word not in _VAGUE for word in words):
        yield Claim(f"{VALUED}# {' '.join(sorted(words))}", _same(found[0][0]), changed)


def _of_work(clause: str) -> Iterator[Claim]:
    """Yields the claims of what is done: by its verb, and by all words of a short clause."""
    first = _TOKEN.match(clause)
    verb = first[0].casefold() if first is not None else ""
    if verb.isascii() and verb.isalpha() and verb not in _PLAIN_VERBS and verb not in _IGNORED:
        yield Claim(f"{CHOSEN}do/{_stem(verb)}", "", False)
    whole = key(clause, TERM_WORDS + 1)
    if whole is not None and " " in whole:
        yield Claim(f"{CHOSEN}do/{whole}", "", False)


def _of_match(match: re.Match[str], changed: bool) -> Iterator[Claim]:
    groups = match.groupdict()
    subject, value, former, latter = (groups.get(name) for name in "svab")
    if subject is not None and value is not None:
        yield from _of_value(subject, value, groups, changed)
        return
    if groups.get("do"):
        yield from _stopped(groups["do"], groups.get("tail"))
        return
    if subject is not None and latter is not None:
        if not groups.get("n") or latter.lstrip("$€£~")[:1].isdigit():
            yield from _of_step(subject, former, latter)
        return
    if former is not None:
        phrase, context = _term(former)
        renewed = _term(latter)[0] if latter is not None else None
        if renewed is not None and set(renewed.split()) - {"new", "old", *(phrase or "").split()} <= _VAGUE:
            return  # another one of the same
        if groups.get("tail"):
            context = key(groups["tail"], CONTEXT_WORDS)
            phrase = None if context is None and groups["tail"].strip(" .!") else phrase
        if latter is not None and context is None:
            context = _term(latter)[1]
        if phrase is None or former.lstrip("$€£~")[:1].isdigit():
            return
        yield Claim(f"{RETIRED}{phrase}{_in(context)}", "", True)
        if context is None and former.strip().casefold().endswith("ing") and " " not in former.strip():
            yield Claim(f"{RETIRED}do/{phrase}", "", True)
        changed = True
    if latter is not None:
        yield from _chosen(latter, changed)


def _of_value(subject: str, value: str, groups: dict[str, str | None], changed: bool) -> Iterator[Claim]:
    """Yields the claim of a subject that has a value; what follows the value is a part of the subject."""
    rest = groups.get("rest") or ""
    end = _REST.match(rest)
    more = rest if end is None else rest[: end.start()]
    if more.strip(" .!)") and not _CONTEXT.match(more):
        return
    named = key(f"{subject} {more}", SUBJECT_WORDS)
    if named is None or _PERSONAL.search(subject):
        return
    # One number for one word may be another's: it replaces only if it says that it is a change.
    weak = not changed and (
        groups.get("w") is not None or (" " not in named and named.isascii() and value[:1].isdigit())
    )
    if groups.get("w") is not None and " " not in named:
        return
    bound = (groups.get("bound") or "").casefold()
    sort = f"{f' {bound}' if bound else ''}{_kind(value)}"
    yield Claim(f"{PURPOSE if weak else VALUED}{named}{sort}", _same(value), changed)
    if not value[:1].isdigit() and not _kind(value):
        yield from _chosen(value, changed)


def _of_step(subject: str, former: str | None, latter: str) -> Iterator[Claim]:
    """Yields the claims of a subject that was changed to a value, and from another."""
    phrase, context = _term(latter)
    named = key(subject, SUBJECT_WORDS) if context is None else key(f"{subject} {context}", SUBJECT_WORDS)
    if named is None or phrase is None or _PERSONAL.search(subject):
        return
    yield Claim(f"{VALUED}{named}{_kind(phrase)}", phrase, True)
    if former is not None and not former[:1].isdigit():
        old = _term(former)[0]
        if old is not None:
            yield Claim(f"{RETIRED}{old}/{named}", "", True)
    yield from _chosen(latter, True, of_purpose=False)


def _chosen(text: str, changed: bool, *, of_purpose: bool = True) -> Iterator[Claim]:
    """Yields the claims of what is chosen: by its phrase and its names, and for what it is used."""
    if text.lstrip("$€£~")[:1].isdigit():
        return
    phrase, context = _term(text)
    terms = [phrase] if phrase is not None else []
    if phrase is not None:
        # A later statement may name it without its version.
        terms += [" ".join(word for word in phrase.split() if not word[:1].isdigit())]
    terms += [word for word in map(_name, _TOKEN.findall(text[:80])[:4]) if word is not None]
    for term in dict.fromkeys(terms):
        if term in ("", "new", "old") or term in _VAGUE:
            continue
        yield Claim(f"{CHOSEN}{term}", "", changed)
        if context is not None:
            yield Claim(f"{CHOSEN}{term}{_in(context)}", "", changed)
    if of_purpose and phrase is not None and context is not None and " " in context:
        # Several things may be used for one purpose: only one that is said to change replaces.
        yield Claim(f"{VALUED if changed else PURPOSE}{context}", phrase, changed)


def _stopped(verb: str, tail: str | None) -> Iterator[Claim]:
    """Yields the claim of a statement that something is no longer done."""
    work = key(f"{verb} {tail or ''}", TERM_WORDS + 1)
    if work is not None and verb.casefold() not in _IGNORED:
        yield Claim(f"{RETIRED}do/{work}", "", True)


def _term(text: str) -> tuple[str | None, str | None]:
    """Returns the key of a term, and of what it is for; None for a long or vague one."""
    end = _REST.search(text)
    said = text if end is None else text[: end.start()]
    around = _CONTEXT.search(f" {said}")
    if around is None:
        return key(said, TERM_WORDS), None
    head, tail = f" {said}"[: around.start()], f" {said}"[around.end() :]
    context = key(tail, CONTEXT_WORDS)
    return (key(head, TERM_WORDS), context) if context is not None else (None, None)


def _in(context: str | None) -> str:
    return f"/{context}" if context is not None else ""


def _name(word: str) -> str | None:
    """Returns the key of a word that looks like a name: with a digit, an inner capital or a sign in it."""
    marked = any(map(str.isdigit, word[1:])) or any(map(str.isupper, word[1:])) or any(sign in word for sign in "-_/+#")
    if not marked or not any(map(str.isalpha, word)) or word[:1].isdigit():
        return None
    return _stem(word.casefold())


@lru_cache(maxsize=4_000)
def key(text: str, most: int) -> str | None:
    """Returns the content words of a text, in one order and form; None if there are none, or more than `most`."""
    words = list(dict.fromkeys(map(_stem, content(text))))
    if not 0 < len(words) <= most or all(word in _VAGUE for word in words):
        return None
    return " ".join(sorted(words))


def content(text: str) -> list[str]:
    """Lists the content words of a text, casefolded."""
    tokens = (token.casefold().removesuffix("'s") for token in _TOKEN.findall(text))
    return [token for token in tokens if token not in _IGNORED]


@lru_cache(maxsize=4_000)
def _stem(word: str) -> str:
    if word in _VAGUE:
        return word
    return word if _CJK.search(word) else base_of(word)


def _same(value: str) -> str:
    """Returns a value for comparison."""
    return " ".join(value.casefold().split()).rstrip(" .!;,。")


def _kind(value: str) -> str:
    """Returns a mark of values that exclude only each other."""
    said = _same(value)
    return next((f" ?{place}" for place, words in enumerate(_KINDS) if said in words), "")
