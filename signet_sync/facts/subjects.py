"""Finds what a statement gives a value to and what it retires, so that a later one can replace an earlier one.

The rules are narrow, since a decision that is hidden wrongly is worse than an outdated one that is shown. Two
statements about different things must never have the same subject, so that a statement with a condition, a question or
a long subject has none; a value replaces only one of its sort; and what holds only in some place replaces only what
holds in the same place. English first; German, Spanish, Russian, Chinese and Japanese by a few
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
# What is `USED` somewhere is retired by what is `DROPPED` everywhere, but neither by a rule nor for another place.
NAMED, VALUED, PURPOSE, CHOSEN, RETIRED, USED, DROPPED = ":=~+-*!"
REPLACED_BY = {
    NAMED: NAMED, VALUED: VALUED, PURPOSE: VALUED, CHOSEN: RETIRED, RETIRED: CHOSEN, USED: DROPPED, DROPPED: CHOSEN
}  # fmt: skip

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
# No match begins inside a run of spaces: each place in it would look at all of the run again.
_REST = late(
    r"(?<!\s)\s*(?:[,(:]|[，、（：]|\s(?:because|since|as|so|but|which|that|who|and|to|by|with|instead|rather|than|weil|da|und|"
    r"porque|y|потому|и|anymore|any more|now|again|everywhere|completely|entirely|altogether|jetzt|ahora)\b)",
    re.IGNORECASE,
)
_CONTEXT = late(r"\s(?:for|in|on|as|at|within|inside|of|per|during|für|als|bei|im|para|en|для|в)\s+", re.IGNORECASE)
# "A for deciding what to build" is used for no other purpose than A.
_WHAT_FOR = late(r"\sfor\s[^\W\d_]{2,20}ing\s(?:out\s)?(?:what|which|whether|when|how)\b.*$", re.IGNORECASE)

_KINDS = (
    frozenset(("on", "off", "true", "false", "enabled", "disabled", "an", "aus", "aktiviert", "deaktiviert")),
    frozenset(("required", "optional", "mandatory")),
    frozenset(("forbidden", "allowed")),
    frozenset(("hourly", "daily", "nightly", "weekly", "monthly", "quarterly", "yearly")),
)
# Of these many things are said: no name replaces another. Neither does one said of several things, or of some work.
_WHOLES = frozenset(
    """
    backend frontend app application server client service worker site website ui ux gui api cli tool program system
    repo repository package module script component page product platform stack build pipeline codebase auth
    authentication authorization mobile desktop web accessibility security performance privacy design infra
    infrastructure deployment team release data style docs documentation quality process i18n
    """.split()
)
# Of these only one thing is said: a plain word is a value.
_ROLES = frozenset(
    """
    color colour mode format language strategy policy method engine provider level type theme font locale timezone
    branch region license licence encoding algorithm default fuel name unit currency
    """.split()
)
# Numbers by which something is known.
_IDENTITIES = frozenset("port ports id pid uid number".split())
# A property, of which something may have several.
_PROPERTY = late(
    r"(?:[a-z]{3}ed|able|ible|ly|ive|al|ous|ful|less|ent|ant|ic|first|only|driven|ready|free|safe|based)$"
    r"|^(?:a?sync|offline|online|public|private|atomic|lazy|strict|new|old|done|open|closed|live|fast|slow|good|bad|simple"
    r"|none|unlimited|here|there|required|random|immutable|final|internal|external)$"
)
_BRANDED = late(r"(?:-\w+ed|[a-z]ized|[a-z]able|-(?:first|only|driven|ready|free|safe|based))$", re.IGNORECASE)
_NAME_WORD = late(r"[^\W\d_a-z][\w.+#/-]*|v?\d+(?:\.\w+)*")
_SMALL_NAME = late(r"[^\W\d_][\w.+#@/-]*")
# Behind a name: "JSON files".
_HOLDERS = frozenset("file files table tables database db server cluster queue store".split())
_LIKE_NUMBER = late(r"^(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|half|hundred)\b")
_AMOUNT = late(r"[-~≈]?[$€£]?\d+(?:[.,:_/×x-]\d+)*\s?(?P<unit>%|°|[^\W\d_]{0,14})")
_UNITS = {
    base_of(word): sort
    for sort, words in (
        ("s", "ms millisecond s sec second min minute h hour d day week month year sekunde minute stunde tag"),
        ("", "time try tries attempt retry"),
        ("b", "b kb mb gb tb kib mib gib tib byte bytes kilobyte megabyte gigabyte k m g"),
    )
    for word in words.split()
}  # fmt: skip
# What follows holds for some place, time or case only.
_NARROW = late(
    r"\b(?:in|for|only|when|while|except|inside|on|at|within|during|per|outside|to|with|where|under|until|from|among"
    r"|between|after|before|via|through|but|für|bei|im|para|en|для|в)\b",
    re.IGNORECASE,
)
_REASON = late(r"\b(?:because|since|so|instead|rather|weil|da|porque|потому)\b", re.IGNORECASE)
_EXCEPTION = late(
    r"\b(?:only(?!\s+\d)|solely|except\w*|unless|apart from|besides|other than|but (?:in|for|on|at|not)|nur|außer|solo"
    r"|salvo|только|кроме)\b",
    re.IGNORECASE,
)
_OF_EXCEPTION = {VALUED: PURPOSE, PURPOSE: PURPOSE, CHOSEN: USED, USED: USED}
_SENTENCE = late(r"\b(?:use[sd]?|using|runs?|has|have|is|are|keeps?|needs?|will|should|must)\b", re.IGNORECASE)
# At either end of a clause: that it is a change says nothing of the subject.
_MARK = late(
    r"^(?:from now on|as of (?:today|now)|henceforth|now|ab sofort|ab jetzt|jetzt|a partir de ahora|теперь"
    r"|今後は?|现在),?\s*"
    r"|(?:,|(?<![\s,]))\s+(?:from now on|going forward|as of (?:today|now)|now|any ?more|again|ab sofort|ab jetzt)$",
    re.IGNORECASE,
)
# The number of a clause that has one, and what it was before.
_ASIDE = late(
    r"(?<!\s)\s*+(?:\(|(?:,\s++|(?<=\s))(?:because|since|instead of|rather than|weil|statt|porque)\b)", re.IGNORECASE
)
_MEASURED = late(
    r"(?:(?P<bound>at most|at least|no more than|no less than|max(?:imum)?|min(?:imum)?|up to|below|under|above"
    r"|over)\s+)?(?P<v>[-~≈]?[$€£]?\d+(?:[.,:_/×x-]\d+)*(?:\s?(?:%|°|(?!(?:not|and|or|for|in|on|at|per|to|of|with|by|as"
    r"|when|an?|um|pro|und|por|на)\b)[^\W\d_]{1,14}))?)(?![\w])(?P<rest>.*)$",
    re.IGNORECASE,
)
_FORMER_NUMBER = late(
    r"(?<!\s)\s*+\(?\b(?:instead of|rather than|not|was|statt|вместо)\s+[$€£]?\d[\d.,:]*\s?[^\W\d_]{0,8}\)?\s*$"
    r"|\bfrom\s+[$€£]?\d[\d.,:]*\s?[^\W\d_]{0,8}\s+(?=to\s+[$€£]?\d)",
    re.IGNORECASE,
)
_QUANTITY = late(
    r"(?<![\w#./:@-])[$€£~≈]?\d+(?:[.,:]\d+)*(?:\s?(?:%|ms|s|secs?|seconds?|mins?|minutes?|h|hours?|days?|weeks?|months?|years?|times|tries|attempts"
    r"|[kmgt]i?b|sekunden?|minuten?|stunden?|tagen?|segundos?|minutos?|horas?|días?)(?!\w)|秒|分|日|天|小时)?(?![\w/#-])",
    re.IGNORECASE,
)
# Behind one of these a number is a name.
_NUMBERED = late(
    r"\b(?:phase|step|version|v|release|migration|milestone|sprint|issue|pr|mr|ticket|python|node|rule|section|chapter|case|"
    r"http|https|status|error|code|port|ports|level|floor|camera|adr|rfc|first|last|top|on|from|since|by|id|support|"
    r"tenant|shard|region|line|row|week|day|schritt|zeile|paso)\s$",
    re.IGNORECASE,
)
_NAMED_NUMBER = late(r"\w\s[A-Z]\w*\s$")  # "Safari 17"
# A number without a unit is an amount only directly behind one of these, in a clause that names a limit.
_LIMIT = late(
    r"\b(?:limit\w*|timeouts?|retries|tries|attempts|budget|threshold|quota|at most|at least|max\w*|min(?:imum)?|cap"
    r"|capped|up to|no more than|interval|ttl|size|length|rate|depth)\b",
    re.IGNORECASE,
)
_COUNTED_BY = late(
    r"\b(?:limit\w*|timeouts?|retries|budget|threshold|quota|most|least|than|to|max\w*|min(?:imum)?|cap|capped|is|are|of|be"
    r"|at|now|only|size|length)\s$",
    re.IGNORECASE,
)
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
    if _EXCEPTION.search(said):
        every = [
            claim._replace(subject=f"{_OF_EXCEPTION[claim.subject[0]]}{claim.subject[1:]}")
            for claim in every
            if claim.subject[0] in _OF_EXCEPTION
        ]
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
    """Yields the claims of `Name: value`, if that is a value and no sentence or rule."""
    bare = _MARK.sub("", value)
    reason = _ASIDE.search(bare)
    said, aside = (bare, "") if reason is None else (bare[: reason.start()], bare[reason.start() :])
    if _CONDITIONAL.search(value) or _is_narrow(aside):
        return
    measure = _MEASURED.match(said)
    if measure is not None:
        yield from _of_value(name, measure["v"], measure.groupdict(), changed, name)
    else:
        sort = _sort(said, name)
        if sort is not None:
            yield Claim(f"{NAMED}{name}{sort}", value.casefold(), changed)
            yield Claim(f"{VALUED}{key(name, SUBJECT_WORDS) or name}{sort}", _same(said), changed)
    yield from _chosen(value, changed, of_subject=True)


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
    measure = _AMOUNT.match(found[0][0].strip())
    unit = measure["unit"] if measure is not None else ""
    before = bare[: found[0].start()]
    is_limit = _LIMIT.search(clause) and (_COUNTED_BY.search(before) or not before.strip())
    if not unit and not found[0][0].startswith(("$", "€", "£")) and (not is_limit or _is_year(found[0][0])):
        return
    words = [_stem(word) for word in map(str.casefold, _TOKEN.findall(left)) if word not in _PLAIN]
    if not _IDENTITIES.isdisjoint(words):
        return
    if 2 <= len(words) <= AMOUNT_WORDS and any(word not in _IGNORED and word not in _VAGUE for word in words):
        yield Claim(f"{VALUED}# {' '.join(sorted(words))} #{_unit(unit)}", _same(found[0][0]), changed)


def _of_work(clause: str) -> Iterator[Claim]:
    """Yields the claims of what is done: by its verb, and by all words of a short clause."""
    first = _TOKEN.match(clause)
    verb = first[0].casefold() if first is not None else ""
    if verb.isascii() and verb.isalpha() and verb not in _PLAIN_VERBS and verb not in _IGNORED:
        yield Claim(f"{USED}do/{_stem(verb)}", "", False)
    whole = key(clause, TERM_WORDS + 1)
    if whole is not None and " " in whole:
        yield Claim(f"{CHOSEN}do/{whole}", "", False)


def _of_match(match: re.Match[str], changed: bool) -> Iterator[Claim]:
    groups = match.groupdict()
    subject, value, former, latter = (groups.get(name) for name in "svab")
    if subject is not None and value is not None:
        yield from _of_value(subject, value, groups, changed)
        return
    if subject is not None and (groups.get("u") or groups.get("was")):
        yield from _gone_by(subject, groups.get("u") or groups["now"] or "", groups.get("was"), changed)
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
        if latter is not None and _SENTENCE.search(latter):
            return  # its subject is not known
        if context is None and _is_narrow(former.partition(" with ")[0]):
            return
        is_rule = bool(groups.get("rule")) and not changed
        yield from _retired(f"{phrase}{_in(context)}", is_rule=is_rule)
        changed = True
    if latter is not None:
        yield from _chosen(latter, changed)


def _of_value(
    subject: str, value: str, groups: dict[str, str | None], changed: bool, name: str | None = None
) -> Iterator[Claim]:
    """Yields the claims of a subject that has a value; what follows the value is a part of the subject."""
    rest = groups.get("rest") or ""
    end = _REST.match(rest)
    more = rest if end is None else rest[: end.start()]
    if more.strip(" .!)") and not _CONTEXT.match(more):
        return
    named = key(f"{subject} {more}", SUBJECT_WORDS)
    if named is None or _PERSONAL.search(subject) or _is_narrow(rest[len(more) :]):
        return
    sort = _sort(value, subject)
    if sort == "" and name is None and len(value) > 1 and value.isupper() and not _has_role(subject):
        sort = " A"  # "is FIFO" says how it is, and no name
    if sort is not None and groups.get("w") is not None and not sort.startswith(" ?") and not _has_role(subject):
        sort = None
    if sort is not None:
        # One number for one word may be another's: it replaces only if it says that it is a change.
        is_number = value.lstrip("-~≈$€£")[:1].isdigit()
        weak = not changed and (
            groups.get("w") is not None
            or (is_number and not _IDENTITIES.isdisjoint(subject.casefold().split()))
            or (name is None and " " not in named and named.isascii() and is_number)
        )
        bound = (groups.get("bound") or "").casefold()
        sort = f"{f' {bound}' if bound else ''}{sort}"
        if name is not None and not weak:
            yield Claim(f"{NAMED}{name}{f' {more.strip()}' if more.strip() else ''}{sort}", _same(value), changed)
        if groups.get("w") is None or " " in named:
            yield Claim(f"{PURPOSE if weak else VALUED}{named}{sort}", _same(value), changed)
    if not value[:1].isdigit() and not _kind(value) and groups.get("w") is None:
        yield from _chosen(value, changed, of_subject=True)


def _gone_by(subject: str, what: str, former: str | None, changed: bool) -> Iterator[Claim]:
    """Yields the claims of a subject that goes by something: only for this subject, unless all of that is dropped."""
    named = key(subject, SUBJECT_WORDS)
    if named is None or _PERSONAL.search(subject):
        return
    old = _term(former) if former is not None else (None, None)
    if old[0] is not None and old[1] is None:
        yield from _retired(f"{old[0]}/{named}", is_rule=False)
    phrase, context = _term(what)
    if phrase is None or context is not None or what.lstrip("$€£~")[:1].isdigit():
        return
    yield Claim(f"{CHOSEN}{phrase}/{named}", "", changed)
    # One plain word may be used for much else.
    if " " in phrase or any(map(_name, _TOKEN.findall(_head(what)))):
        yield Claim(f"{USED}{phrase}", "", changed)


def _of_step(subject: str, former: str | None, latter: str) -> Iterator[Claim]:
    """Yields the claims of a subject that was changed to a value, and from another."""
    phrase, context = _term(latter)
    named = key(subject, SUBJECT_WORDS) if context is None else key(f"{subject} {context}", SUBJECT_WORDS)
    if named is None or phrase is None or _PERSONAL.search(subject):
        return
    sort = _sort(_head(latter), subject)
    if sort is not None:
        yield Claim(f"{VALUED}{named}{sort}", phrase, True)
    if former is not None and not former[:1].isdigit():
        old = _term(former)[0]
        if old is not None:
            yield from _retired(f"{old}/{named}", is_rule=False)
    yield from _chosen(latter, True, of_subject=True)


def _retired(what: str, *, is_rule: bool) -> Iterator[Claim]:
    """Yields the claims of what is retired; a rule does not retire what is used in some place."""
    yield Claim(f"{RETIRED}{what}", "", True)
    if not is_rule:
        yield Claim(f"{DROPPED}{what}", "", True)


def _chosen(text: str, changed: bool, *, of_subject: bool = False) -> Iterator[Claim]:
    """Yields the claims of what is chosen: by its phrase and its names, and for what it is used.

    `of_subject`: it is chosen for a subject, so for no other place.
    """
    if text.lstrip("$€£~")[:1].isdigit():
        return
    phrase, context = _term(text)
    if phrase is None:
        return
    head = _head(text)
    # A later statement may name it without its version.
    terms = [phrase, " ".join(word for word in phrase.split() if not word[:1].isdigit())]
    terms += [word for word in map(_name, _TOKEN.findall(head)) if word is not None]
    everywhere = context is None and not of_subject and not _is_narrow(text)
    for term in dict.fromkeys(terms):
        if term in ("", "new", "old") or term in _VAGUE:
            continue
        yield Claim(f"{CHOSEN if everywhere and term == phrase else USED}{term}", "", changed)
        if context is not None and not of_subject:
            yield Claim(f"{CHOSEN if term == phrase else USED}{term}{_in(context)}", "", changed)
    if not of_subject and context is not None and " " in context:
        # Several things may be used for one purpose: only one that is said to change replaces.
        yield Claim(f"{VALUED if changed else PURPOSE}{context}", phrase, changed)


def _stopped(verb: str, tail: str | None) -> Iterator[Claim]:
    """Yields the claims of a statement that something is no longer done."""
    work = key(f"{verb} {tail or ''}", TERM_WORDS + 1)
    if work is not None and verb.casefold() not in _IGNORED:
        yield from _retired(f"do/{work}", is_rule=False)


def _sort(value: str, subject: str) -> str | None:
    """Returns a mark of values that exclude only each other, as values of a subject; None for what is no value."""
    said = _same(value)
    kind = _kind(value)
    if kind or not said:
        return kind or None
    measure = _AMOUNT.fullmatch(said)
    if measure is not None:
        return f" #{_unit(measure['unit'])}"
    words = value.strip(" .!;,。").split()
    if len(words) == 2 and words[1].casefold() in _HOLDERS:
        words.pop()
    if len(words) > 3 or _LIKE_NUMBER.match(said) or _is_topic(subject):
        return None
    if all(map(_NAME_WORD.fullmatch, words)) and not words[0][0].isdigit():
        if any(map(_BRANDED.search, words)):
            return None
        return ""
    is_small = len(words) == 1 and _SMALL_NAME.fullmatch(words[0]) is not None
    return "" if is_small and not _PROPERTY.search(said) else None


def _unit(word: str) -> str:
    """Returns the sort of a unit."""
    base = base_of(word.casefold()) if word else ""
    return _UNITS.get(base, base)


def _is_topic(subject: str) -> bool:
    """Returns whether a name that is said of a subject is no choice among others."""
    last = (content(subject) or [""])[-1]
    several = last.endswith("s") and not last.endswith(("ss", "us", "is")) and last.isascii()
    return last in _WHOLES or several or (last.endswith("ing") and last.isascii())


def _has_role(subject: str) -> bool:
    return not _ROLES.isdisjoint(content(subject)[-1:])


def _is_year(number: str) -> bool:
    return re.fullmatch(r"(?:19|20)\d\d", number.strip()) is not None


def _is_narrow(text: str) -> bool:
    """Returns whether something is said for some place, time or case only; why it is so does not matter."""
    reason = _REASON.search(text)
    return _NARROW.search(text if reason is None else text[: reason.start()]) is not None


def _head(text: str) -> str:
    """Returns a term without what follows it."""
    end = _REST.search(text)
    said = text if end is None else text[: end.start()]
    around = _CONTEXT.search(f" {said}")
    return (said if around is None else f" {said}"[: around.start()]).strip()


def _term(text: str) -> tuple[str | None, str | None]:
    """Returns the key of a term, and of what it is for; None for a long or vague one."""
    text = _WHAT_FOR.sub("", text)
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
