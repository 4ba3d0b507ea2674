"""Reads from a blocker what is still so, or not there yet, and finds whether a report says otherwise of the same thing.

Several languages by a few forms each; a blocker of another form has no state, and is ended by other rules only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from signet_sync.facts.work_words import CJK, GENERIC, same_work, words_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.word_forms import base_of

# In front of what a report says is no longer so.
NO_LONGER = "no longer"

_CLAUSE = late(
    r"[;.:](?=\s|$)|\s[–—]\s|[。；：]|,\s|\s(?:because|since|until|till|once|before|weil|bis|porque|hasta|потому)\s"
    r"|\s(?:and|but|und|aber|y|pero|а|но)\s(?=.{0,60}\b(?:still|noch|todavía|ещё|all ещё)\b)",
    re.IGNORECASE,
)
_BEFORE_VERB = late(
    r"^(?P<s>.{2,80}?)\s*(?:\b(?:still|todavía|aún|ainda|вс[её] ещ[её]|по-прежнему)\b|仍然?|还在?|依然)\s*(?P<rest>\S.*)$",
    re.IGNORECASE,
)
_BEHIND_VERB = late(
    r"^(?P<s>.{2,80}?)\s(?P<v>[^\W\d_]+)\s(?:immer noch|noch immer|noch|encore|toujours|ancora)\s(?P<rest>(?!nicht|nie|kein|pas)\S.*)$",
    re.IGNORECASE,
)
# "It waits for the role: it lacks a right": of what is waited for.
_AWAITED = late(
    r"\b(?:waits?|waiting|blocked|wartet|warten|espera\w*|attend\w*)\s+(?:for|on|by|auf|a|por)\s+(?P<s>[^:;,]{2,60}?)\s*[:;,]\s+"
    r"(?:it|which|that|this|they|sie|er|es|die|der|das)\s+(?:still\s+|noch\s+)?(?P<rest>[^;,.]+)",
    re.IGNORECASE,
)
# What is not there: without these words a statement names the thing.
_ABSENT = late(
    r"^(?:so far,? |as yet,? |until now,? )?(?:there (?:is|are|was|were|has been|have been) )?(?:as yet |still )?(?:no|not a(?: single)?)\s"
    r"|\b(?:is|are|was|were)\s(?:still\s)?(?:missing|absent)\b|\b(?:does|do)(?: not|n['’]t) exist\b|\b(?:lacks?|has no|have no)\b"
    r"|\bfehl(?:t|en)\b(?: noch)?|^(?:es gibt )?(?:noch |bisher |bislang )?kein\w*\s|^(?:todavía |aún )?no hay\b|\bfalta[mn]?\b"
    r"|^(?:ainda )?não há\b|^il n['’]y a (?:pas|aucun\w*)\b|\bil manque\b|\bmanquent?\b|^non (?:c['’]è|ci sono)\b|\bmanca(?:no)?\b"
    r"|^(?:пока )?нет\s|\bотсутству\w+|还?没有|缺少?|がまだない|はまだない|がありません|はまだありません|이 없습니다|가 없습니다",
    re.IGNORECASE,
)
# What was not done: the thing stands in front, what was to be done behind.
_UNDONE = late(
    r"\s(?:has|have|had|was|were|is|are)\s(?:still\s)?(?:never|ever|not(?=\s.*\byet\b|\syet\b)|yet)\s(?:yet\s|ever\s)?(?:been\s)?"
    r"|\s(?:has|have|was|were|is|are)n['’]t\s(?=(?:yet\s|.*\byet\b))(?:yet\s)?(?:been\s)?"
    r"|\s(?:wurden?|ist|sind|hat|haben)\s(?:noch|bisher|bislang)\s(?:nie|nicht)\s"
    r"|^(?:noch|bisher|bislang) (?:nie|nicht) (?:wurden?|ist|sind)\s|(?:^|\s)(?:nunca|aún no|todavía no)\s(?:se\s)?(?:han?\s|está\w*\s)?(?:sido\s)?"
    r"|\sn['’](?:a|est|ont|sont) (?:jamais|pas encore)\s(?:été\s)?|\snon (?:è|ha|sono|hanno) (?:ancora|mai)\s(?:stat\w\s)?"
    r"|(?:^|\s)(?:ainda não|nunca)\s(?:foi\s|foram\s|está\s)?|(?:^|\s)(?:ещ[её] не|пока не|ни разу не|никогда не)\s|还没有?|尚未|从未|从来没有?|まだ|一度も",
    re.IGNORECASE,
)
_VERB_LAST = late(r"(?:noch|bisher|bislang)\b", re.IGNORECASE)
_YET = late(r"\b(?:yet|so far|until now|ever|noch|bisher|todavía|aún|encore|ancora|ainda)\b", re.IGNORECASE)
_FIRST = frozenset(
    map(base_of, "first erste erster ersten erstes primer primera première premier prima primo primeira первый первая".split())
) | {"第一", "初め", "初回", "最初"}  # fmt: skip
_PRESENT = frozenset(
    map(base_of, "add create build implement introduce write set exist install provide receive arrive get have done".split())
)  # fmt: skip
_CHANGES = frozenset(
    map(base_of, "move switch change migrate update replace transfer transferred convert upgrade become port wechselt umgestellt".split())
)  # fmt: skip
_FAILS = frozenset(map(base_of, "fail break broken crash hang red flaky".split()))
_WORKS = frozenset(map(base_of, "pass work succeed green".split()))
# One does several of these at a time: another value does not end the first.
_SEVERAL = frozenset(map(base_of, "depend contain include support import call use have log list need know".split()))
# Words without which a report of another language says the same.
_AUXILIARIES = frozenset(
    "se ha han fue fueron wurde wurden ist sind hat haben été est sont è sono stata stato был была было".split()
)
_CLEAR = 3  # words; a thing with so many is there if a report speaks of it
# Of these a blocker says nothing but that it is one.
_OPEN = frozenset(map(base_of, "wait waiting block blocked open pending need missing lack unclear unavailable".split()))
_PIECE = late(r"[^\W\d_]{3,}")


class State(NamedTuple):
    """What a blocker says of a `subject`: that it still does something, or that it is not there or not done yet."""

    kind: Literal["still", "absent"]
    subject: tuple[str, ...]
    verb: str = ""
    objects: tuple[str, ...] = ()


def state_of(text: str) -> State | None:
    """Returns the state of which a blocker complains; None if it has another form."""
    awaited = _AWAITED.search(text)
    if awaited is not None:
        return _still(awaited["s"], "", awaited["rest"])
    for clause in [part.strip(" ,:") for part in _CLAUSE.split(text)[:3] if part]:
        undone, absent = _UNDONE.search(clause), _ABSENT.search(clause)
        if undone is not None:
            before = _ABSENT.sub(" ", clause[: undone.start()])
            thing, done = words_of(_YET.sub(" ", before)), words_of(_YET.sub(" ", clause[undone.end() :]))
            if thing and done:
                return State("absent", tuple(thing), done[0], tuple(done[1:]))
            if done[1:] and _VERB_LAST.match(clause):
                return State("absent", tuple(done[:-1]), done[-1])
            return State("absent", tuple(done[1:]), done[0]) if done[1:] else None
        if absent is not None:
            thing = words_of(_YET.sub(" ", f"{clause[: absent.start()]} {clause[absent.end() :]}"))
            return State("absent", tuple(thing)) if thing else None
        still = _BEFORE_VERB.match(clause) or _BEHIND_VERB.match(clause)
        if still is not None:
            return _still(still["s"], still.groupdict().get("v") or "", still["rest"])
    return None


def _still(subject: str, verb: str, rest: str) -> State | None:
    named, said = words_of(subject), words_of(f"{verb} {rest}")
    if not named or not said or said[0] in _OPEN:
        return None
    if CJK.search(rest):
        return State("still", tuple(named), "", tuple(_names(said)))
    return State("still", tuple(named), said[0], tuple(said[1:]))


def is_otherwise(state: State, told: Sequence[str], *, resolves: bool) -> bool:
    """Returns whether a report of these words says that something is no longer in a state.

    `resolves`: the report says that something is resolved or done, too.
    """
    # Issues, which a report has in front, say nothing of a state.
    words = [word for word in told if not word.startswith("#") and word == word.casefold()]
    return _is_there(state, words, resolves) if state.kind == "absent" else _does_otherwise(state, words)


def _is_there(state: State, told: Sequence[str], resolves: bool) -> bool:
    needed = [*state.subject, *filter(None, (state.verb,)), *state.objects]
    told = [word for word in told if word not in _AUXILIARIES]
    if NO_LONGER in told:
        return False
    if any(map(CJK.search, needed)):
        return resolves and len(set(needed) & set(told)) >= 0.6 * len(set(needed))
    is_first, is_present = (not some.isdisjoint(told) for some in (_FIRST, _PRESENT))
    rest = list(told)
    while rest and rest[0] not in needed and (rest[0] in _FIRST or rest[0] in _PRESENT or rest[0] in GENERIC):
        rest.pop(0)
    if state.verb and len(needed) > 1:
        verbs = [word for word in rest[: len(needed) + 1] if same_work(state.verb, [word])]
        if verbs and {*state.subject, *state.objects} <= set(rest[: len(needed) + 1]):
            return True
    if not rest or rest[0] not in state.subject or not set(state.subject) <= set(rest[: len(state.subject) + 1]):
        return False
    if is_first:
        return resolves
    if state.verb or (len(state.subject) == 1 and len(rest) > 1 and not _names(state.subject)):
        return False
    return is_present or resolves or len(state.subject) >= _CLEAR or bool(_names(state.subject))


def _does_otherwise(state: State, told: Sequence[str]) -> bool:
    names = _names(state.subject)
    reach = len(state.subject) + 1
    leading = [word for word in told if word != NO_LONGER][: max(reach, 3) if names else reach]
    if not set(names or state.subject) <= set(leading):
        return False
    if NO_LONGER in told:
        return same_work(state.verb, told) or not set(state.objects).isdisjoint(told)
    objects = set(state.objects)
    if state.verb in _FAILS:
        return objects <= set(told) and not _WORKS.isdisjoint(told)
    own = {*state.subject, state.verb, *objects}
    is_alike = any(_is_alike(word, one) for word in told if word not in own for one in _names(state.objects))
    if not _CHANGES.isdisjoint(told):
        others = [word for word in told if word != state.verb]
        return is_alike or state.verb in told or not objects.isdisjoint(told) or same_work(state.verb, others)
    if not set(_names(state.objects)).isdisjoint(told) or objects <= set(told) or not set(told) - own:
        return False
    if state.verb not in told or (state.verb in _SEVERAL and objects.isdisjoint(told)):
        return is_alike
    verb = list(told).index(state.verb)
    if set(_names(told[:verb])) - own:
        return False
    return verb <= reach + 1 and (len(state.subject) > 1 or bool(names) or is_alike)


def _names(words: Sequence[str]) -> list[str]:
    """Lists the words with digits or signs."""
    return [word for word in words if not word.isalpha() and word != NO_LONGER]


def _is_alike(word: str, name: str) -> bool:
    """Returns whether two different names begin with the same letters: level_cm and level_mm."""
    one, other = _PIECE.match(word), _PIECE.match(name)
    return one is not None and other is not None and one[0] == other[0] and word != name and not word.isalpha()
