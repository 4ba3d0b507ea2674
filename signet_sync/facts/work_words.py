"""Lists the words of a statement in a form in which two can be compared, and tells which verbs name the same work."""

from __future__ import annotations

from collections.abc import Iterable

from signet_sync.facts.subjects import content
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.word_forms import base_of

_CJK_PAIR = late("(?=([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]{2}))")
CJK = late("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")
# Verbs for the same work, one group a line.
_SAME_WORK = """
    add write create build implement introduce
    remove delete drop
    fix repair resolve correct
    move migrate port
    update change switch bump
    test check verify measure confirm
    document describe mention note
    deploy release ship publish
    ask send mail ping
    try attempt rehearse exercise
    own belong transfer transferred ownership
"""
_GROUP = {base_of(word): place for place, line in enumerate(_SAME_WORK.strip().splitlines()) for word in line.split()}
_FIRST_OF_GROUP = {
    base_of(word): base_of(line.split()[0]) for line in _SAME_WORK.strip().splitlines() for word in line.split()
}
# Words that say that something waits, fails or came to an end: no part of what it is about.
GENERIC = frozenset(
    base_of(word)
    for word in """
    wait waits waiting block blocks blocked blocker need needs needed pending open missing lack lacks fail fails failed
    failing broken break breaks down unavailable unreachable sent received yet still merged approved approval unblocked
    arrived fixed resolved solved granted grant confirmed released landed delivered answered answer answers available back
    reachable work works working issued provided signed accepted enabled restored renewed settled cleared lifted over ended
    got gave given came here green done shipped published rotated replied reply unlocked closed completed complete
    repaired gone finished wrote written ran run running pass passes passed ready now again finally today longer no
    not access get hope hopefully since until please made success successfully stable up online flaky
    noch nicht fehlt wurde wurden ist wird wartet warten gelöst behoben freigegeben angekommen eingetroffen genehmigt
    gemergt gemerged erledigt bestätigt geliefert fertig falta está fue fueron ya llegó llegaron
    ещё ждём ждет пришёл пришла получен получена нужен нужна исправлен решён
    """.split()
)


def words_of(text: str) -> list[str]:
    """Lists the content words of a text in their common form, CJK in pairs of characters."""
    return [*(base_of(word) for word in content(CJK.sub(" ", text))), *_CJK_PAIR.findall(text)]


def same_work(verb: str, told: Iterable[str]) -> bool:
    """Returns whether one of some words is a verb, or another one for the same work."""
    group = _GROUP.get(verb)
    return any(word == verb or (group is not None and _GROUP.get(word) == group) for word in told)


def work_of(word: str) -> str:
    """Returns the first of the verbs for the same work; any other word as it is, in its common form."""
    return _FIRST_OF_GROUP.get(word, word)
