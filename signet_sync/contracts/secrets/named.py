"""Finds the values that stand under a secret's name, however a language, a file or a person writes that.

At each name three questions are asked in turn: what joins it to a value (`_LINK`), where that value begins and ends,
and whether it can be a secret there (`values.fits`). Every pattern here is matched at a place, none is searched for,
and each reads a bounded stretch, so that the time grows with the number of names alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from signet_sync.contracts.secrets.names import Name, words
from signet_sync.contracts.secrets.page import Found, Page
from signet_sync.contracts.secrets.values import Proof, Where, fits, is_mixed, is_said, is_vocabulary

RULE = "assignment"
# Nothing longer is read as one value.
_UP_TO = "{0,1024}"
_LONGEST = 1024

_SETS = re.compile(r"[.\w]{0,40}?(?:set|with|use)_?(?i:pass|api|secret|access|client|auth|private|pwd)")

# What ends a name (a quote, escaped in JSON within JSON, a bracket, Markdown's stars), remarks, and what gives a value.
_LINK = re.compile(
    r"""(?P<close>(?:\\{1,7}["'`]|["'`]|[*_]{1,2}|\]){0,4})
    (?:\[\d{0,4}\])?                                             # char password[32] =
    [ \t]{0,40}
    (?P<remark>\[[^\]\n]{0,40}\]|\([^()\n]{1,40}\)|(?:for|von|für)[ ][^\n:=]{1,80})?
    [ \t]{0,8}
    (?:
      (?P<typed>:[ \t]{0,4}(?:[&*?]|\[\])*[A-Za-z_][\w.]{0,32}     # password: Optional[str] | None =
        (?:[\[<][\w.\[\]<>&*?|, '"]{0,48}?[\]>])?(?:[ ]?\|[ ]?[\w.\[\]]{1,24}){0,3}[ \t]{0,4}=(?![=>])
        |(?:str|string|String)[ \t]{0,4}:?=(?!=))
      |(?P<pair>[,;/]?(?:[\s+>|]|\\{1,4}[nrt]){0,40}[,;/]?\s{0,8}-?\\{0,7}["']?      # name: PASSWORD, value:
        (?i:(?:parameter)?(?:value|default|val|content))\\{0,7}["']?[ \t]*[:=][ \t]*)
      |(?P<sep>(?::=|=>|->|\?=|\+=|\|\|=?|\?\?=?|={1,3}|!==?|:(?!:)|：|<-|→)
        (?:[*_]{1,2}(?=[\s`]))?)
      |(?P<set>\)\s{0,4}(?:\.(?:send_keys|sendKeys|fill|type|setValue|set|text)\(|\|\||\?\?|or\b)[ \t]*)
      |(?P<default>,[^()\n]{0,120}?\bdefault[ \t]*=[ \t]*)
      |(?P<block>\{(?:\s|\\n)[^{}]{0,240}?\bdefault[ \t]*=[ \t]*)
      |(?P<listed></key>(?:\s|\\n){0,40}<(?:string|data)>)
      |(?P<tag>(?:[ ][^<>\n]{0,80})?>|&gt;)
      |(?P<item>(?<=["'`])[ \t]*,[ \t]*(?=\\{0,7}["'`]|[rbf]["']))
      |(?P<call>\(\s{0,4}(?=\\{0,7}["'`@]))
      |(?P<cell>[ \t]*\|[ \t]*(?:=[ \t]*)?)
    )""",
    re.X,
)
_SAID = re.compile(
    r"""["'`*_]{0,3}[ \t]{1,4}(?:\([^()\n]{1,40}\)[ \t]|(?:for|von|für|of)[ \t]
      (?:(?!is\b|ist\b|lautet\b)[^\s.,:;]{1,32}[ \t]){1,5})?
    (?:is|was|are|ist|lautet|war|to|wird|=|equals|reads|be)(?:[ \t]now|[ \t]set[ \t]to|[ \t]jetzt)?:?[ \t]{1,4}""",
    re.X,
)
_SPACED = re.compile(r"""["'`]?[ \t]{1,8}""")
# What stands between `=` and a literal: a call, a default, a conversion.
_WRAPPED = re.compile(
    r"""[ \t]*(?:
      (?P<default>(?:[\w.$:\[\]"'()?!-]{1,60}?[ \t]*(?:\|\||\?\?|\?:|\bor\b)
        |[\w.$:]{0,40}(?i:env\w*|get\w*|fetch|config|default|option|var|setting)\w*[(\[]
        [ \t]*["'][\w.:-]{1,60}["'][ \t]*,[ \t]*(?:default[ \t]*=|fallback[ \t]*=)?))
      |(?P<made>(?:new[ ])?(?i:[\w.:&]{0,24}
        (?:secretstr|secret|string|str|bytes|bytearray|from|of|valueof|tochararray|literal|some|b64decode|cstr)!?)\()
    )[ \t]*(?=[rbfuRBFU@]?["'`])""",
    re.X,
)
_OPEN = re.compile(r"""[ \t]{0,40}(?:(?:[rbfuRBFUL@$]{1,2}|b64)(?=\\{0,7}["']))?(?P<quote>(?P<slashes>\\{0,7})["'`])""")
_BLANKS = re.compile(r"[ \t]{0,40}")
_QUOTED = {
    '"': re.compile(r'(?:[^"\\\n]|\\[^\n])' + _UP_TO + r'(?=")'),
    "'": re.compile(r"(?:[^'\\\n]|\\[^\n])" + _UP_TO + r"(?=')"),
    "`": re.compile(r"(?:[^`\\\n]|\\[^\n])" + _UP_TO + r"(?=`)"),
}
_BARE = re.compile(r"""[^\s"'`\\,;<>(){}\[\]&|*]{1,1024}""")
_LINE = re.compile(r"""[^\s"'`\\<]{1,1024}""")
_PIECE = re.compile(r"""[^\s"'`\\<>;]{1,1024}""")
_TEXT = re.compile(r"[^<>\n]{1,1024}(?=</|<!\[|&lt;/)")
_CDATA = re.compile(r"\s{0,40}<!\[CDATA\[([^\]\n]{1,1024})\]\]>")
_LINE_ENDS = re.compile(r"[ \t]*(?:,?[ \t]*(?:[#;][^\n]*|//[^\n]*|\\n.*)?(?:\n|\\r|\\n|\Z))")
_CELL = re.compile(r"[^|\n]{1,200}(?=\|)")
_CELL_MARKS = " \t`*_\"'"

# A YAML block: the indented lines below.
_BLOCK = re.compile(
    r"[ \t]*[|>][+-]?\d?[+-]?[ \t]*\n"
    r"((?P<indent>[+>|]?[ \t]+)[^\n]{0,1024}(?:\n(?P=indent)[^\n]{0,1024}|\n(?=\n(?P=indent))){0,40})"
)

# How lines begin whose `name=value` is the whole of them.
_REST_OF_LINE = re.compile(r"[^\n\\]{0,1024}")
_LINE_HEADS = re.compile(
    r"[ \t>+|$#*\"'-]{0,40}(?:[A-Za-z]{1,16}[ ]){0,2}"
    r"(?:(?:export|set|setx|env|ENV|ARG|declare -x|local|readonly|-e|--env|--build-arg)[ \t]+)?\Z"
)


def find(page: Page) -> Iterator[Found]:
    """The values under secrets' names."""
    text = page.text
    for name in words(page).names:
        found = _value_of(page, name)
        if found is not None and "[REDACTED:" not in text[slice(*found)] and not _repeats(text, name, found):
            yield Found(*found, RULE)
    for place in words(page).uses:
        found = _used(text, place)
        if found is not None and "[REDACTED:" not in text[found[0] : found[1]]:
            yield Found(*found, RULE)


def _repeats(text: str, name: Name, span: tuple[int, int]) -> bool:
    """`CHALLENGE_PASSWORD = "challengePassword"`: the value is the name once more."""
    value = _plain(text[slice(*span)])
    return _plain(text[name.start : name.end]).endswith(value) or (
        value.isalpha() and value.endswith(_plain(text[name.start : name.end]))
    )


def _plain(word: str) -> str:
    return "".join(filter(str.isalnum, word)).lower()


# What a bare `key` asks for, within reach.
_LONG_VALUE = re.compile(r"(?:[^\w\n]{1,16}|[^\n]{1,24}?[\"'=> ])[A-Za-z0-9+/=_-]{20}")


def _value_of(page: Page, name: Name) -> tuple[int, int] | None:
    text, proof = page.text, name.proof
    if proof is Proof.KEY and not _LONG_VALUE.match(text, name.end):
        return None
    link = _LINK.match(text, name.end)
    if link is None:
        return _spaced(page, name)
    if text.startswith("[REDACTED:", name.start - 10):
        return None
    at, how = link.end(), link.lastgroup
    if how in ("tag", "listed"):
        return _element(page, name, at)
    if how == "cell":
        return _cell(page, name, at)
    if how in ("item", "call"):
        quoted = _quoted(text, at)
        if quoted is None:
            return None
        value = text[slice(*quoted)]
        asked = text[max(0, name.start - 2) : name.start].rstrip("\"'`\\")[-1:] in ("(", "")
        sure = proof in (Proof.PASSWORD, Proof.SECRET) and (asked if how == "item" else _SETS.match(text, name.start))
        return (
            quoted
            if (fits(value, proof, Where.QUOTED) if sure else is_said(value) and fits(value, proof, Where.CODE))
            else None
        )
    if how == "pair" and not _names_pair(text, name):
        if not link[0].rstrip().endswith("="):
            return None
        how = "default"
    if how in ("set", "default", "block"):
        quoted = _quoted(text, at)
        return quoted if quoted and fits(text[slice(*quoted)], proof, Where.QUOTED) else None
    if how == "sep" and link["sep"].startswith(":") and (block := _BLOCK.match(text, at)):
        return _block(text, proof, block)
    return _given(page, name, link, at)


def _given(page: Page, name: Name, link: re.Match[str], at: int) -> tuple[int, int] | None:
    text, proof = page.text, name.proof
    wrapped = _WRAPPED.match(text, at)
    if wrapped:
        at = wrapped.end()
    quoted = _quoted(text, at)
    if quoted is not None:
        literal = text[slice(*quoted)]
        # A cache's key is a digest too.
        if proof is Proof.KEY and name.end - name.start == 3 and literal.isalnum() and not is_mixed(literal):
            return None
        return quoted if fits(literal, proof, Where.QUOTED) else None
    if wrapped:
        return None
    blanks = _BLANKS.match(text, at)
    start = blanks.end() if blanks else at
    where, pattern = _where(text, name, link, start)
    value = pattern.match(text, start)
    if value is None:
        return None
    end = value.end()
    if where is Where.LINE and pattern is _BARE and text[end : end + 1] in _CODE_FOLLOWS:
        where = Where.CODE
    if where is Where.CODE:
        if text[end : end + 1] and text[end] in "([{<" and not text.startswith("<br", end):
            return None
    elif not _LINE_ENDS.match(text, end) and where is Where.FIELD:
        # Words follow: a sentence.
        where = Where.CODE
    trimmed = text[start:end]
    if where is not Where.LINE:
        trimmed = trimmed.rstrip(".,:;)]}")
    if not trimmed or text.startswith(("[REDACTED:", "**"), start):
        return None
    return (start, start + len(trimmed)) if fits(trimmed, proof, where) else None


def _where(text: str, name: Name, link: re.Match[str], start: int) -> tuple[Where, re.Pattern[str]]:
    """How a value without quotes is written, and the pattern that reads it."""
    before = text[max(0, name.start - 1) : name.start]
    separator = (link["sep"] or "")[:1]
    if link["pair"]:
        return Where.FIELD, _LINE
    tight = link["sep"] == "=" and start == link.end() == name.end + 1
    if (
        tight
        and name.proof is Proof.PASSWORD
        and (
            before in ("?", "&")
            or (
                before == " "
                and text[name.start - 2] not in ",("
                and text[max(0, name.start - 60) : name.start].count("(") == 0
            )
        )
    ):
        return Where.LINE, _BARE
    if before in ("?", "&"):
        return Where.CODE, _BARE
    if before == ";" and tight:
        return Where.LINE, _PIECE
    head = text[max(0, name.start - 60) : name.start]
    escaped = head.rfind("\\n")
    line = max(head.rfind("\n") + 1, escaped + 2 if escaped >= 0 else 0)
    alone = (line > 0 or name.start < 60) and _LINE_HEADS.match(head, line) is not None
    rest = _REST_OF_LINE.match(text, start)
    last = rest[0].rstrip()[-1:] if rest else ""
    if separator == "=" and link["sep"] == "=" and alone and start == link.end() and last not in (",", ")", ";", "}"):
        return Where.LINE, _LINE
    if separator == ":" and (alone or before in "\"'*_`"):
        return Where.FIELD, _LINE if last not in (",", ")", "}", "]", ";", "{", "[", "(") else _BARE
    return Where.CODE, _BARE


def _quoted(text: str, at: int) -> tuple[int, int] | None:
    """What stands in the quotes that open here, whichever marks it holds; None if none open, or do not close."""
    opened = _OPEN.match(text, at)
    if opened is None:
        return None
    quote, slashes = opened["quote"], opened["slashes"]
    start = opened.end()
    if slashes:
        end = text.find(quote, start, start + _LONGEST)
        # Deeper quotes have more slashes.
        while end >= 0 and text[end - 1] == "\\":
            end = text.find(quote, end + 1, start + _LONGEST)
        if end < 0 or "\n" in text[start:end]:
            return None
        return (start, end) if end > start else None
    if text.startswith(quote * 2, start):
        start += 2
    inside = _QUOTED[quote].match(text, start)
    if inside is None or inside.end() == start:
        bare = _LINE.match(text, start) if inside is None else None
        return (start, bare.end()) if bare else None
    return inside.span()


def _element(page: Page, name: Name, at: int) -> tuple[int, int] | None:
    """What stands in an element of XML or HTML with a secret's name, or under a key in a property list."""
    text = page.text
    opens = text[max(0, name.start - 80) : name.start]
    if ("<" not in opens and "&lt;" not in opens) or opens.endswith("</"):
        return None
    data = _CDATA.match(text, at)
    inside = data or _TEXT.match(text, at)
    if inside is None:
        return None
    start, end = data.span(1) if data else inside.span()
    value = text[start:end]
    start += len(value) - len(value.lstrip())
    value = value.strip()
    return (start, start + len(value)) if fits(value, name.proof, Where.QUOTED) else None


def _cell(page: Page, name: Name, at: int) -> tuple[int, int] | None:
    """The next cell of a row of a table whose cell before it is the name."""
    text = page.text
    line = text.rfind("\n", max(0, name.start - 200), name.start) + 1
    head = text[line : name.start]
    if "|" not in head:
        return None
    cell = _CELL.match(text, at)
    if cell is None:
        return None
    value = cell[0].strip(_CELL_MARKS)
    start = cell.start() + cell[0].find(value)
    proof = name.proof
    return (
        (start, start + len(value)) if " " not in value and is_said(value) and fits(value, proof, Where.CODE) else None
    )


def _block(text: str, proof: Proof, block: re.Match[str]) -> tuple[int, int] | None:
    start, end = block.span(1)
    start += len(block["indent"])
    lines = text[start:end].split()
    return (start, end) if lines and any(fits(line, proof, Where.FIELD) for line in lines) else None


def _names_pair(text: str, name: Name) -> bool:
    """`name: DB_PASSWORD` before `value: …`: an environment variable of Kubernetes, a property, a parameter."""
    head = text[max(0, name.start - 24) : name.start].rstrip("\"'\\ \t")
    return head.lower().endswith(
        ("name:", "name=", "key:", "key=", "parameterkey=", "id:", "id=", "variable:", "option:", 'name":', 'key":')
    )


_CODE_FOLLOWS = frozenset("([{<),;]}")
_QUOTES = frozenset("\"'`")
_BEFORE_OPTION = ("", " ", "\t", "\n", '"', "'", "`", "(", "[", ",", "=", "+", ">", "n")
_SET_BEFORE = re.compile(
    r"(?:\b(?:set|setx|add|config|env|arg)\b[^\n;|]{0,80}?[ \t][^\s]{0,60}"
    r"|#define[ \t]+|\b(?:login|machine|user)\b\s+\S{1,64}[\s+>]+)$",
    re.I,
)
_SQL_BEFORE = re.compile(
    r"\b(?:user|role|login|identified|database|server|encrypted|alter|create|grant|set)\b[^;]{0,120}$", re.I
)
_HASHES = ("commit ", "hash ", "revision ", "sha ", "digest ")
_LAST_WORD = re.compile(r"(?<![^\s\"'`(])(?P<secret>[^\s\"'`]{6,200})[\"'`]?$")


def _spaced(page: Page, name: Name) -> tuple[int, int] | None:
    """Behind a blank: an option's value, SQL, a sentence; or before it: «use X as token»."""
    text, proof = page.text, name.proof
    verb = _SAID.match(text, name.end) if not _is_bare_pass(text, name) else None
    if verb is not None:
        at = verb.end()
        quoted = _quoted(text, at)
        if quoted is not None:
            value = text[slice(*quoted)]
            plain = value.isalpha() and is_vocabulary(value)
            if (
                not plain
                and " " not in value
                and (
                    is_said(value) or (proof is Proof.PASSWORD and len(value) >= 10 and fits(value, proof, Where.LINE))
                )
            ):
                return quoted
            return None
        return _sentence(text, at)
    spaced = _SPACED.match(text, name.end)
    if spaced is None:
        return None
    at = spaced.end()
    if text[name.start : name.start + 1] == "-":
        if text[name.start - 1 : name.start] in _BEFORE_OPTION:
            quoted = _quoted(text, at)
            if quoted is not None:
                return quoted if fits(text[slice(*quoted)], proof, Where.QUOTED) else None
            bare = _LINE.match(text, at)
            if bare is None or bare[0].startswith("-") or "[REDACTED:" in bare[0]:
                return None
            trimmed = bare[0].rstrip(".,:;)]}|")
            sure = proof if proof is not Proof.KEY else Proof.TOKEN
            said = sure is Proof.PASSWORD and is_said(trimmed)
            return (at, at + len(trimmed)) if said or fits(trimmed, sure, Where.CODE) else None
    elif text[at : at + 1] in _QUOTES and not _is_bare_pass(text, name):
        head = text[max(0, name.start - 96) : name.start]
        quoted = _quoted(text, at)
        if quoted is not None:
            value = text[slice(*quoted)]
            if proof is Proof.PASSWORD and _SQL_BEFORE.search(head):
                return quoted if fits(value, proof, Where.QUOTED) else None
            if _SET_BEFORE.search(head) and proof is not Proof.KEY:
                return quoted if fits(value, proof, Where.QUOTED) else None
            return quoted if is_said(value) and fits(value, proof, Where.CODE) else None
    elif proof is not Proof.KEY:
        bare = _LINE.match(text, at)
        if bare and is_said(bare[0]) and _SET_BEFORE.search(text[max(0, name.start - 96) : name.start]):
            return bare.span() if fits(bare[0], proof, Where.CODE) else None
    return None


def _is_bare_pass(text: str, name: Name) -> bool:
    """«Pass "x"» says what to do."""
    return text[name.start : name.end].lower() == "pass"


def _sentence(text: str, at: int) -> tuple[int, int] | None:
    value = _LINE.match(text, at)
    if value is None:
        return None
    said = value[0].rstrip(".,:;)!?]}")
    while said[:1] == "(":
        said = said[1:]
        at += 1
    return (at, at + len(said)) if is_said(said) else None


def _used(text: str, place: int) -> tuple[int, int] | None:
    """The word before «as the token»."""
    start = max(0, place - 200)
    used = _LAST_WORD.search(text[start:place])
    if used is None or not is_said(used["secret"]) or text.endswith(_HASHES, 0, start + used.start()):
        return None
    return start + used.start("secret"), start + used.end("secret")
