"""Lists the words of a statement in a form in which two can be compared, and tells which verbs name the same work."""

from __future__ import annotations

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.word_forms import STOP_WORDS, base_of

CJK = late("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")
_CJK_PAIR = late("(?=([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]{2}))")
_TOKEN = late(r"[^\W_](?:[\w./@#+'-]*[\w#+])?")
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
_FIRST_OF_GROUP = {
    base_of(word): base_of(line.split()[0]) for line in _SAME_WORK.strip().splitlines() for word in line.split()
}


def content(text: str) -> list[str]:
    """Lists the content words of a text, casefolded."""
    tokens: list[str] = _TOKEN.findall(text.casefold())
    if "'s" in text:
        tokens = [token.removesuffix("'s") for token in tokens]
    return [token for token in tokens if token not in _IGNORED]


def words_of(text: str) -> list[str]:
    """Lists the content words of a text in their common form, CJK in pairs of characters."""
    return [*(base_of(word) for word in content(CJK.sub(" ", text))), *_CJK_PAIR.findall(text)]


def work_of(word: str) -> str:
    """Returns the first of the verbs for the same work; any other word as it is, in its common form."""
    return _FIRST_OF_GROUP.get(word, word)
