"""Finds what a summary reports as done or resolved, and whether that ends a blocker or next step stated earlier."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from signet_sync.facts.items import reported_lines
from signet_sync.facts.states import NO_LONGER, State, is_otherwise, state_of
from signet_sync.facts.work_words import CJK, GENERIC, same_work, words_of
from signet_sync.formats.fact import Item, Report
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.word_forms import base_of

REPORTS_PER_ARTIFACT = 40
WORDS_PER_REPORT = 24

_REPORTED = frozenset(("decision", "constraint", "note"))
_CLAUSE_END = late(r"[.;!…](?=\s|$)|\s[–—→]\s|[。；！]|\n|,\s(?=(?:and|but|so|which|und|aber|y|pero|а|но)\s)")
# In a sentence made by rules what follows one of these is what is left.
_LEFT = late(r"[;.,]\s*(?:open|blocked|next|asked|stopped midway|todo)\s*:.*$", re.IGNORECASE | re.DOTALL)
_NOT_YET = late(
    r"\b(?:not|no|never|open|blocked|blocks?|todo|next|still|pending|waits?|waiting|awaiting|until|once|when|if|unless|will"
    r"|would|should|must|needs?|to be|plan|plans|planned|later|tomorrow|remaining|remains|left|yet|try|asked|unclear|failed"
    r"|fails|cannot|missing|expected|hopefully|nicht|kein\w*|noch|wartet|offen|sobald|muss|soll|sollte|wird|fehlt|no|falta"
    r"|pendiente|todavía|hay que|не|ещё|ждём|ждет|ждёт|нужно|надо)\b|n't\b|[?？]|未|没|还|等待|需要|まだ|待ち|ない|ません",
    re.IGNORECASE,
)
# No longer blocked: said with words that otherwise say the contrary.
_FREED = late(
    r"\b(?:no longer|not) (?:waits?|waiting|blocked|blocks?|needed|pending)\b( any ?more)?|\bnicht mehr blockiert\b|"
    r"\bya no (?:está )?bloquead\w+|больше не блокир\w+|不再(?:阻塞|等待)",
    re.IGNORECASE,
)
_RESOLVED = late(
    r"\b(?:merged|approved|unblocked|arrived|fixed|resolved|solved|received|granted|confirmed|released|landed|delivered"
    r"|answered|available|back|reachable|works|issued|provided|signed|accepted|enabled|restored|renewed|settled|cleared"
    r"|lifted|over|ended|got|gave|given|sent|came|here|green|done|shipped|published|rotated|replied|unlocked|closed"
    r"|completed|repaired|gone|gelöst|behoben|freigegeben|angekommen|eingetroffen|genehmigt|gemergt|gemerged|erledigt"
    r"|bestätigt|geliefert|da|resuelt\w+|aprobad\w+|llegó|llegaron|fusionad\w+|desbloquead\w+|recibi\w+|solucionad\w+"
    r"|решен\w*|решён\w*|исправлен\w*|одобрен\w*|получен\w*|получили|пришёл|пришла|пришли|слит\w*|подтвержд\w+)\b"
    r"|已?解决|已批准|已合并|已收到|已到|修好|已修复|解決|承認され|マージ|届い|直り|直し",
    re.IGNORECASE,
)
# "It went through", but not "it went through the logs".
_THROUGH = late(
    r"\b(?:is|are|was|were|went|goes|gone|came|got|all|finally|now)\s(?:\w+ly\s|now\s|all\s)?through"
    r"(?=\s*(?:$|[:,.;!)–—]|(?:now|again|at|on|since|after|without|with|last|this|today|yesterday)\b))"
    r"|\b(?:ist|sind|lief|liefen|ging|kam)\b.{0,60}\bdurch(?=\s*(?:$|[:,.;!)]))|\bdurch(?:gelaufen|gegangen|gekommen)\b"
    r"|\b(?:ha|han) pasado(?=\s*(?:$|[:,.;!)]))|\best pass[ée]+e?s?(?=\s*(?:$|[:,.;!)]))|\bпрош(?:[её]л|ла|ло|ли)\b|已?通过了?|通りました|通った",
    re.IGNORECASE,
)
_NO_LONGER = late(
    r"\b(?:no longer|not any ?more|nicht mehr|keine? \w+ mehr|ya no|больше не|não mais|já não|non più)\b|不再|もう(?=.{0,40}ない)",
    re.IGNORECASE,
)
# A day that a blocker says it lasts until, or by which something is to come.
_OF_A_DAY = late(
    r"\b(?:until|till|by|before|will|arrives?|comes?|due|expected|promised|only|for|rest of|bis|erst|wird|werden|hasta|para|sólo"
    r"|jusqu['’]à|d['’]ici|fino|entro|até|до|к|только)\b.{0,60}?"
    r"\b(?:today|tonight|this (?:morning|noon|afternoon|evening)|heute(?: abend| nachmittag)?|hoy|esta (?:tarde|noche)"
    r"|aujourd['’]hui|ce soir|cet après-midi|oggi|stasera|hoje|esta noite|сегодня|вечера)\b"
    r"|\b(?:today|tonight) only\b|\bin (?:an|one|two|a few|\d{1,2}) (?:hours?|minutes?)\b(?! of)|\bwithin the hour\b"
    r"|\bin einer (?:halben )?stunde\b|\ben una hora\b|\bdans une heure\b|через час|(?:到|等到?)今[天晚]|今[日夜]まで|今晚(?:才|会)|오늘까지",
    re.IGNORECASE,
)
_PAST_DAY = late(
    r"\b(?:since|seit|desde|depuis|da|dal|с)\s+(?:today|this morning|heute|hoy|aujourd['’]hui|oggi|hoje|сегодня)\b"
    r"|\b(?:cannot|can['’]t|could not|not|never|only)\b[^.;]{0,40}\bin (?:an|one|two|a few|\d{1,2}) (?:hours?|minutes?)\b",
    re.IGNORECASE,
)
_FINISHED = late(
    r"\b(?:done|finished|completed|complete|merged|shipped|landed|released|erledigt|fertig|abgeschlossen|hecho|hecha"
    r"|terminad\w+|готов\w*|сделан\w*|выполнен\w*)\b|已完成|完成了|完了|終わり",
    re.IGNORECASE,
)
_ISSUE = late(
    r"(?:\b(?:PR|MR|issue|ticket)\s*)?#(\d{1,6})\b|\b(?:PR|MR|issue|ticket)[ #-]{0,2}(\d{1,6})\b|\b([A-Z]{2,8}-\d{1,6})\b"
)
_AFTER = late(
    r"\b(?:after|before|once|when|until|nach|bevor|sobald|wenn|cuando|después|после|когда)\b|后|後", re.IGNORECASE
)
# What follows is why or how, and no part of a step or blocker.
_ASIDE = late(
    r"\s\(|;\s|[.。](?:\s|$)|,\s(?:i|we|so|because|since|as|it|they|otherwise|weil|da|damit)\s|\s(?:because|since|so that|weil|damit)\s",
    re.IGNORECASE,
)
# A name in the middle of a sentence, but not of who is to do something: that it was done is enough.
_PROPER = late(r"(?<=[\w,)] )[A-Z]\w+\b(?! to\b)")
_SHARE, _BLOCKER_SHARE = 0.65, 0.5


# With one of these a report says that something waits no longer, and its other words may be what did.
_WAITING = frozenset(map(base_of, ("wait", "waiting", "blocked", "block")))


class OpenWords(NamedTuple):
    """The words of a blocker or next step by which a report may end it."""

    aspect: str
    words: tuple[str, ...]
    issues: frozenset[str]
    waits: bool  # it names something else that comes first
    names: frozenset[str] = frozenset()
    state: State | None = None
    is_of_a_day: bool = False  # by its own words it lasts no longer


def reports(body: str, sentence: str, items: Sequence[Item]) -> tuple[Report, ...]:
    """Returns what a (sanitized) summary with this sentence and these items reports, at most `REPORTS_PER_ARTIFACT`."""
    found: dict[tuple[str, ...], Report] = {}
    for text, ticked in _told(body, sentence, items):
        for clause in _CLAUSE_END.split(_LEFT.sub("", text))[:12]:
            report = _report(clause, ticked)
            if report is not None:
                found.setdefault(report.words, report)
            if len(found) == REPORTS_PER_ARTIFACT:
                return tuple(found.values())
    return tuple(found.values())


def _told(body: str, sentence: str, items: Sequence[Item]) -> Iterator[tuple[str, bool]]:
    yield sentence, False
    yield from ((item.text, True) for item in items if item.done)
    yield from ((text, False) for text in reported_lines(body))
    # What was decided is not done yet, unless it says so.
    decided = (item.text for item in items if item.aspect in _REPORTED and not item.done)
    yield from ((text, False) for text in decided if _RESOLVED.search(text) or _FREED.search(text))


def _report(clause: str, ticked: bool) -> Report | None:
    freed = _FREED.search(clause) is not None
    bare = _FREED.sub(" ", clause) if freed else clause
    stopped = not freed and _NO_LONGER.search(bare) is not None
    if not ticked and _NOT_YET.search(_NO_LONGER.sub(" ", bare) if stopped else bare):
        return None
    issues = _issues(clause)
    words = words_of(clause)[:WORDS_PER_REPORT]
    if len(words) < 2 and not issues:
        return None
    if stopped:
        return Report((*issues, NO_LONGER, *words))
    resolves = ticked or freed or any(form.search(clause) for form in (_RESOLVED, _THROUGH))
    return Report((*issues, *words), resolves, ticked or _FINISHED.search(clause) is not None)


@lru_cache(maxsize=4_000)
def open_words(aspect: str, text: str) -> OpenWords | None:
    """Returns the words by which a blocker or next step may be ended; None if there are too few of them."""
    aside = _ASIDE.search(text, 12)
    issues = frozenset(_issues(text))
    after = _AFTER.search(text, 12)
    end = min((found.start() for found in (aside, after) if found is not None), default=len(text))
    words = tuple(words_of(text[:end] if aspect == "next" else text))
    if len(words) < 2 and not issues:
        return None
    names = frozenset(map(base_of, map(str.casefold, _PROPER.findall(text)))).intersection(words)
    waits = _AFTER.search(text) is not None
    if aspect != "blocker":
        return OpenWords(aspect, words, issues, waits, names)
    is_of_a_day = _OF_A_DAY.search(text) is not None and _PAST_DAY.search(text) is None
    return OpenWords(aspect, words, issues, waits, names, state_of(text), is_of_a_day)


def ends(open_: OpenWords, report: Report) -> bool:
    """Returns whether a later report says that a blocker is resolved, or a next step done."""
    told = set(report.words)
    is_step = open_.aspect == "next"
    if open_.issues & told and (report.finished and not open_.waits if is_step else report.resolves):
        return True
    if open_.state is not None:
        plain = list(report.words)
        if is_otherwise(open_.state, plain, resolves=report.resolves or report.finished):
            return True
    if NO_LONGER in told:
        return False
    own = dict.fromkeys(open_.words)
    shared = [word for word in own if word in told]
    if len(shared) < 2 or _name_others(own, told) or not told.issuperset(open_.names):
        return False
    # The verb of a step may be another one for the same work.
    verbs = {open_.words[0], *(word for word in told if same_work(open_.words[0], [word]))} if is_step else set()
    if _WAITING.isdisjoint(shared) and _is_of_another(own.keys() - verbs, told - verbs):
        return False
    share, more = len(shared) / len(own), len(told) - len(shared)
    if not is_step:
        # A few words of a longer report may be about something beside the blocker.
        much = len(shared) >= 3 and share >= _SHARE / 2 and more <= len(shared) + 1
        short = more <= 1 and (share >= _BLOCKER_SHARE or _side_by_side(open_.words, report.words))
        return report.resolves and (much or short)
    if share < _SHARE or min(len(own) - len(shared), more) > 1:
        return False
    if len(shared) < 3 and len(own) > 2 and not report.finished:
        return False
    return report.finished or same_work(open_.words[0], told)


def _name_others(some: Iterable[str], others: Iterable[str]) -> bool:
    """Returns whether both have names with digits or signs, but none in common."""
    named, also = ({word for word in words if not word.isalpha()} for words in (some, others))
    return bool(named and also) and named.isdisjoint(also)


def _is_of_another(own: Iterable[str], told: Iterable[str]) -> bool:
    """Returns whether a report says something else in place of a word: the login schema, and not the billing schema."""
    some, others = ({word for word in words if not CJK.search(word)} - GENERIC for words in (own, told))
    return bool(some - others and others - some)


def _side_by_side(some: Sequence[str], others: Sequence[str]) -> bool:
    """Returns whether two words follow each other in both."""
    return not set(pairwise(some)).isdisjoint(pairwise(others))


def _issues(text: str) -> list[str]:
    return list(dict.fromkeys(f"#{one or two}" if one or two else three for one, two, three in _ISSUE.findall(text)))
