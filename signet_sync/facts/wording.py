"""Tells by its own words whether a text is a statement, and of which aspect if its first words name another one."""

from __future__ import annotations

import re

from signet_sync.facts.words import CJK, content
from signet_sync.formats.fact import Aspect
from signet_sync.formats.lazy_pattern import late

_ROLE = r"\b(?:user|assistant|human|system)\W{0,2}:\s|(?:用户|助手)[:：]"
# Front matter, a fence, or turns of a conversation: the text is a piece of a file or a transcript.
_DEBRIS = late(rf"^-{{3,}}(?:\s|$)|```|~~~|(?:^|[.!?…\"]\s)\W{{0,2}}(?:{_ROLE})", re.IGNORECASE)
_TURN = late(_ROLE, re.IGNORECASE)
# A commit's title says what was done; of a secret that was taken out only its name is left.
_TITLE = late(
    r"^\W*(?:commit (?:notes?|message|title): |(?:fix|feat|chore|docs|refactor|test|perf|build|ci|style)\([\w./-]{1,40}\)!?: )"
    r"|\w=\[REDACTED\b",
    re.IGNORECASE,
)
# Words that begin a sentence about things; with one of these somebody is meant all the same.
_THING = late(r"^\W*(?:(?:the|an?|this|that|these|those|it|there)\b|[A-Z]?[a-z]{2,}ed\s)", re.IGNORECASE)
_SOMEBODY = late(
    r"(?<=\s)[A-ZÀ-ÞА-Я][a-zß-ÿа-я]+|[@＠]\w|\b(?:he|she|they|his|her|their|who|users?|customers?|clients?|teams?|owners?|maintainers?|reviewers?"
    r"|manager|lead|boss|colleagues?|people|person|author|friend|wife|husband|partner|office|i|me|my|we|our)\b"
)
_RULED = late(r"(?<![\s\-=*_])\s*+[-=*_]{3,}+\s*+$")
# With a noun these say something: "no emojis", "only on Fridays".
_LIMITS = late(r"\b(?:no|not|only|off|now)\b|n['’]t\b", re.IGNORECASE)
# One character over and over.
_RUN = late(r"(.)\1{3,}")
_NUMBER_WORDS = frozenset("one two three four five six seven eight nine ten first second third".split())
# Of what is written elsewhere on the page, or to be filled in.
_EMPTY = _NUMBER_WORDS | frozenset(
    """
    todo fixme tbd tba xxx foo bar baz lorem ipsum section sections heading headings paragraph below above see following
    ok okay yes done yep same it's that's
    """.split()
)
# Words that need another one to say something.
_LIGHT = _EMPTY | frozenset(
    """
    want wants wanted find finds found way ways thing things other others anything something everything nothing do does make
    makes made get gets go goes going keep keeps put take takes like need needs never always must should out again exactly
    fine good better right wrong happen happens say says know see look looks try really actually ever use used done work
    """.split()
)
_POINTER = late(r"\b(?:it|this|that|these|those|them|they|he|she|him|her|both|either|neither)\b", re.IGNORECASE)
_VERB = (
    r"(?:is|are|was|were|must|has|have|had|should|will|would|can|cannot|may|might|needs?|means?|goes|go|stays?|makes?|looks?"
    r"|works?|does|do|did|never|always|only|also|still|holds?|takes?|gets?|runs?|comes?|belongs?|ought|isn['’]t|won['’]t"
    r"|doesn['’]t|can['’]t|mustn['’]t)\b"
)
# A clause whose subject only the text before it names.
_POINTS = late(
    r"^\W*(?:(?:and|but|so|also|then|yes|no|ok|well|since|because|as|und|aber|y|pero|et|mais|e|ma|и|но),?\s+){0,3}"
    rf"(?:(?:it|they|he|she)(?=['’\s])|(?:this|that|these|those|both|either|neither)(?=['’]s\s|\s{_VERB})"
    r"|(?:es|das|dies|sie|er)\s(?=(?:ist|sind|war|muss|müssen|soll|sollen|darf|dürfen|wird|hat|bleibt|kann)\b)"
    r"|(?:esto|eso|ésta?|ella|él)\s(?=(?:es|está|tiene|debe|no|se)\b)|(?:cela|ça|ce|elles?|ils?)\s(?=(?:est|doit|doivent|sera|ne|n['’]|faut)\b)"
    r"|(?:questo|quello|ciò)\s(?=(?:è|deve|non|va)\b)|(?:isso|isto|ele|ela)\s(?=(?:é|deve|tem|não)\b)"
    r"|(?:это|он[аои]?)\s(?=(?:должн\w+|не|нужно|надо|будет|всегда)(?:\s|$))|(?:它们?|这个?|那个?)(?=[是要必不应会能])|(?:これ|それ|あれ)[はがも])",
    re.IGNORECASE,
)
_CLAUSES = late(
    r"[,;:.!?…](?:\s+|$)|\s[–—]\s|[，；：。、]|\s(?=(?:because|since|so that|but|while|weil|damit|porque|parce)\s)"
)
# A number, an identifier, or a name within the sentence.
_NAMED = late(r"\d|\w[_/#@.+]\w|[a-z][A-Z]|--?\w|[`\"“«「]|(?<=[\w,;:)] )(?!I\b)[A-ZÀ-ÞА-Я]\w+|\b[A-Z]{2,}\b")
_ONE_WORD = late(r"[\W_]*+(\w++)\W*+")
_NAME = late(r"[a-z][A-Z]|^[A-Z]{2,}+\w*?[a-z]|^[^A-Za-z]*+[A-Za-z]\w*?\d")
_SHORT = 3  # words of a piece of a sentence that stands for no subject

_QUESTION = late(
    r"^\W*(?:(?:open |offene |still open )?(?:questions?|fragen?)|pregunta(?: abierta)?|question (?:ouverte|en suspens)"
    r"|domanda(?: aperta)?|(?:pergunta|questão)(?: aberta)?|(?:открытый )?вопрос|未决问题|开放问题|待确认|疑问|未解決の質問|質問|疑問点)"
    r"\W{0,2}\s*[:：]\W{0,2}\s*(?=\S)",
    re.IGNORECASE,
)
# The heading of a next step, said again. "Next release needs a tag" keeps its word.
_NEXT = late(
    r"^\W*next(?: steps?| up)?(?:\W{0,2}\s*[:：]\W{0,2}\s*|,\s+|\s+[–—-]\s+|\s+(?=(?:we|i|you|they|let['’]s)\b))(?=\S)",
    re.IGNORECASE,
)
_DECISION = late(
    r"^\W*(?:(?:key )?decisions?|decided|entscheidung|entschieden|beschlossen|decisión|decidido|décision|décidé|decisione|deciso"
    r"|decisão|решение|решено|决定|決定)\W{0,2}\s*[:：]\W{0,2}\s*(?=\S)",
    re.IGNORECASE,
)
_DECIDED = late(
    r"^\W*(?:(?:we|i) (?:have |['’]ve )?)?decided\b(?! (?:by|later|once|when|next)\b)|^\W*(?:wir haben|ich habe) .{1,160}\b(?:entschieden|beschlossen)\b"
    r"|^\W*(?:(?:hemos |se ha |se )?decid(?:imos|ido|ió))\b|^\W*(?:on a|nous avons) décidé\b|^\W*(?:abbiamo|si è) deciso\b"
    r"|^\W*(?:decidimos|decidiu-se)\b|^\W*(?:мы )?решили\b|^已?决定|に決めた|に決定",
    re.IGNORECASE,
)


def is_statement(text: str, aspect: Aspect) -> bool:
    """Returns whether a text says something by itself; a person's name does, a piece of a transcript does not."""
    # Looked at first for the signs that each pattern needs: most texts have none of them.
    colon = ":" in text or "：" in text
    if (colon or "```" in text or "~~~" in text or text.startswith("---")) and _DEBRIS.search(text):
        return False
    if (colon or "[REDACTED" in text) and (_TITLE.search(text) or len(_TURN.findall(text)) > 1):
        return False
    if aspect == "person":
        return _THING.match(text) is None or _SOMEBODY.search(text) is not None
    if CJK.search(text):
        return not _only_points(text)
    bare = _RULED.sub("", text)
    words = [word for word in content(_RUN.sub(" ", bare)) if word not in _EMPTY]
    if _repeats(words) or not words:
        return False
    if len(words) + min(len(_LIMITS.findall(bare)), 1) < 2 and not _is_name(bare):
        return False
    return aspect == "question" or not _only_points(bare)


def _is_name(text: str) -> bool:
    """Returns whether a text is one word that looks like a name: `camelCase`, `IPv`, `h264`."""
    word = _ONE_WORD.fullmatch(text)
    return word is not None and _NAME.search(word[1]) is not None


def _repeats(words: list[str]) -> bool:
    """Returns whether words are the same few over and over."""
    return len(set(words)) < len(words) and any(
        len(words) % size == 0 and words == words[:size] * (len(words) // size)
        for size in range(1, len(words) // 2 + 1)
    )


def _only_points(text: str) -> bool:
    """Returns whether only what was said before names what a text is about: "it must be done in the evening"."""
    if _NAMED.search(text):
        return False
    pointers, words = len(_POINTER.findall(text)), content(text)
    if pointers and text.isascii() and (_LIGHT.issuperset(words) or (pointers > 1 and len(words) < 2)):
        return True
    parts = [part for part in (part.strip() for part in _CLAUSES.split(text)[:8]) if part]
    pointing = [_POINTS.match(part) is not None for part in parts]
    return any(pointing) and all(
        points or len(part.split()) < _SHORT for points, part in zip(pointing, parts, strict=True)
    )


def classified(aspect: Aspect, text: str) -> tuple[Aspect, str]:
    """Returns the aspect that a text itself names, and the text without that name."""
    question = _QUESTION.match(text)
    if question is not None:
        return "question", text[question.end() :]
    if aspect in ("next", "blocker", "question"):
        label = _DECISION.match(text)
        if label is not None:
            return "decision", text[label.end() :]
    if aspect == "next":
        if _DECIDED.match(text):
            return "decision", text
        label = _NEXT.match(text)
        return aspect, text[label.end() :] if label is not None else text
    return aspect, text
