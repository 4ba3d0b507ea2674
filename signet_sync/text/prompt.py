"""Reads a prompt: whether memory is asked at all, and whether the prompt asks about earlier work."""

from __future__ import annotations

import re

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.index_words import CJK

LONGEST = 20_000  # characters; a longer prompt is pasted text
_READ = 4_000  # characters of a prompt that are searched for: its beginning

# A command of the harness, a shell command, a note to the harness's own memory, what a program reports.
_NO_PROMPT = late(r"[/!#]|<(?:task-notification|command-name|command-message|local-command|bash-input|system)")
_PATH = late(r"/[\w.-]+/")
_WORDS = late(rf"[^\W_]+|[{CJK}]")
_ASCII_WORDS = late("[0-9A-Za-z]+")  # the other one takes milliseconds to compile
_GREETINGS = frozenset(
    """
    abend afternoon again all and bom bonjour buenas buenos buongiorno bye ciao danke day dia days días evening good
    gracias grazie guten hallo hej hello hey hi hola howdy merci moin morgen morning obrigada obrigado oi ok okay olá
    salut servus tag tardes test testing thank thanks there you привет спасибо 你 好 您 谢
    """.split()
)
# Greetings and go-aheads, of which nothing can be remembered.
_CHAT = _GREETINGS.union(
    """
    a alright bitte bueno continue cool do done exactly fine go great gut is it ja keep kein klar later lgtm looks mach
    machen nein nice no now off on perfect please proceed sehr si sounds start stop super sure that this to try vale
    weiter wow y yeah yep yes да нет ок хорошо
    """.split()
)

_GOES_ON = frozenset("continue do go keep mach machen now off on please proceed start stop try weiter".split())

_QUESTION = late(
    r"[?？]|^\W*(?:what|why|when|where|which|who|whose|whom|how|did|was|were|had|has|have|is|are|do|does)\b"
    r"|か。?\s*$|吗|呢",
    re.IGNORECASE,
)
# A wish in the form of a question: of something new, not of something that was.
_WISH = late(
    r"\b(?:can|could|would|will|shall|should|may|might)\s+(?:you|we|i)\b|\blet'?s\b|\bhow (?:do|can|should) (?:i|you)\b"
    r"|\b(?:kannst|könntest|können|sollen|wollen) (?:du|sie|wir|ich)\b|\bpuedes\b|\bpodemos\b|можешь",
    re.IGNORECASE,
)
# Our work, or the past: `we`, `our`, a verb in a past tense.
_EARLIER = late(
    r"\b(?:why|we|us|our|ours|did|was|were|had|been|ever|already|earlier|before|previously|yesterday"
    r"|last (?:time|week|month)"
    r"|so far|until now|still|kept|went|got|chose|left|came|could(?:n't)?|[a-z]{3,}ed|according to"
    r"|warum|wieso|weshalb|wir|uns|unser\w*|wurden?|waren?|hatten?|gestern|bisher|damals"
    r"|zuletzt|schon|soll(?:en|ten|te)?|stimmten?"
    r"|por qué|nuestr\w+|hicimos|fue|fueron|antes|ayer|decidimos|почему|мы|нам|нас|наш\w*|был[аои]?|вчера|раньше|уже)\b"
    r"|た|まし|決ま|以前|前回|我们|我們|之前|以前|已经|已經|上次|为什么|為什麼",
    re.IGNORECASE,
)


def find_search_words(prompt: str) -> str:
    """Returns what is searched for on a prompt; "" if it is none, is small talk, or is a long pasted text."""
    text = prompt.strip()
    if not text or len(text) > LONGEST or (_NO_PROMPT.match(text) and not _PATH.match(text)):
        return ""
    read = text[:_READ]
    return "" if _only(_CHAT, read) else read


def is_greeting(text: str) -> bool:
    """Returns whether a text only greets and thanks, or has no word at all."""
    return _only(_GREETINGS, text)


def is_small_talk(text: str) -> bool:
    """Returns whether a text only greets, thanks or praises, and asks for nothing."""
    return len(text) <= LONGEST and _only(_CHAT - _GOES_ON, text)


def _only(known: frozenset[str], text: str) -> bool:
    words = _ASCII_WORDS if text.isascii() else _WORDS
    return all(word[0].casefold() in known for word in words.finditer(text))


def is_about_earlier_work(prompt: str) -> bool:
    """Returns whether a prompt is a question about what was done, decided or agreed."""
    return _QUESTION.search(prompt) is not None and _WISH.search(prompt) is None and _EARLIER.search(prompt) is not None
