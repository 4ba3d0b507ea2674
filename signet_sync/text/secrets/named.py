"""Finds values under a secret's name, in any notation of a language, a file or a person.

At each name three questions are answered in turn: what joins it to a value (`SHAPES.link`), where that value begins and
ends, and whether it can be a secret there (`values.fits`). Every pattern here is matched at a position, none is searched for,
and each reads a bounded stretch, so that the time grows with the number of names only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.secrets.names import (
    Name,
    Proof,
    Where,
    cannot_be_word,
    fits,
    is_compound,
    is_mixed,
    is_no_word,
    is_phrase,
    is_placeholder,
    is_vocabulary,
    words,
)
from signet_sync.text.secrets.searched_text import SHAPES, SearchedText, SecretSpan

RULE = "assignment"
Span = tuple[int, int]
# Nothing longer is read as one value.
_LONGEST = 1024
_WORDS_OF_BLOCK = 16
_QUOTED = {quote: late(rf"(?:[^{quote}\\\n]|\\[^\n]){{0,{_LONGEST}}}(?={quote})") for quote in "\"'`"}
_CELL_MARKS = " \t`*_\"'"
_CODE_FOLLOWS = frozenset("([{<),;]}")
_KEYWORDS = frozenset({"return", "continue", "break", "raise", "yield", "pass", "print"})


def find(searched: SearchedText) -> Iterator[SecretSpan]:
    """Yields the values under secrets' names."""
    text, done = searched.text, 0
    for name in sorted(words(searched).names):
        # A name within a value is a part of it.
        found = _value_of(searched, name) if name.start >= max(done, searched.refused) else None
        if found is not None and "[REDACTED:" not in text[slice(*found)] and not _repeats(text, name, found):
            done = found[1]
            yield SecretSpan(*found, RULE)
    for place in words(searched).uses:
        found = _find_used(text, place)
        if found is not None and "[REDACTED:" not in text[found[0] : found[1]]:
            yield SecretSpan(*found, RULE)


def _repeats(text: str, name: Name, span: Span) -> bool:
    """Returns whether the value repeats the name: `CHALLENGE_PASSWORD = "challengePassword"`."""
    value, plain = _plain(text[slice(*span)]), _plain(text[name.start : name.end])
    return plain.endswith(value) or (value.isalpha() and value.endswith(plain))


def _plain(word: str) -> str:
    return "".join(filter(str.isalnum, word)).lower()


def _if_fits(text: str, span: Span | None, proof: Proof, where: Where) -> Span | None:
    return span if span and fits(text[slice(*span)], proof, where) else None


def _value_of(searched: SearchedText, name: Name) -> Span | None:
    text, proof = searched.text, name.proof
    # The output of a test runner.
    if text.startswith("PASS: ", name.start):
        return None
    if proof is Proof.KEY and text[name.start - 1 : name.end + 1] in ("?key=", "&key="):
        proof = Proof.TOKEN
        name = name._replace(proof=proof)
    elif proof is Proof.KEY and not SHAPES.long_value.match(text, name.end):
        return None
    if (
        proof is Proof.PASSWORD
        and text[max(0, name.start - 3) : name.start].rstrip().endswith("/")
        and (pair := SHAPES.pair.match(text, name.end))
    ):
        return pair.span("secret") if fits(pair["secret"], proof, Where.GIVEN) else None
    link = SHAPES.link.match(text, name.end)
    if link is None:
        return _find_spaced(searched, name)
    if text.startswith("[REDACTED:", name.start - 10):
        return None
    at, how = link.end(), link.lastgroup
    if how in ("tag", "listed"):
        return _element(searched, name, at)
    if how == "cell":
        return _cell(text, name, at)
    if how in ("item", "call"):
        quoted = _find_quoted(text, at)
        value = text[slice(*quoted)] if quoted else ""
        before = text[max(0, name.start - 4) : name.start].rstrip("\"'`\\#.").rstrip(" ")
        is_constant = how == "item" and text[name.start : name.end].isupper() and not value.isupper()
        is_argument = before.endswith("(") or name.start < 4 or (is_constant and text[name.end] in ", ")
        sure = proof in (Proof.PASSWORD, Proof.SECRET) and (
            is_argument if how == "item" else SHAPES.sets.match(text, name.start)
        )
        said = is_no_word(value) and fits(value, proof, Where.CODE)
        return quoted if (fits(value, proof, Where.QUOTED) if sure else said) else None
    if how == "pair" and (block := SHAPES.yaml_block.match(text, at)):
        return _block(text, proof, block)
    if how == "inside":
        end = text.find(")", at)
        value = text[at:end]
        sure = proof is Proof.PASSWORD and (is_mixed(value) or not value.isalnum()) and cannot_be_word(value)
        return (at, end) if sure and fits(value, proof, Where.CODE) else None
    if how == "sep" and link["sep"] == ":":
        if block := SHAPES.yaml_block.match(text, at):
            return _block(text, proof, block)
        if below := SHAPES.below.match(text, at):
            return _find_below(text, name, below)
    return _find_given(searched, name, link, at)


def _find_given(searched: SearchedText, name: Name, link: re.Match[str], at: int) -> Span | None:
    text, proof = searched.text, name.proof
    if below := SHAPES.next_line.match(text, at):
        at = below.end()
    wrapped = SHAPES.wrapping.match(text, at)
    if wrapped:
        at = wrapped.end()
    quoted = _find_quoted(text, at)
    if quoted is not None:
        literal = text[slice(*quoted)]
        kept = SHAPES.scheme.match(literal)
        quoted = quoted[0] + (kept.end() if kept else 0), quoted[1] - len(literal) + len(literal.rstrip())
        literal = text[slice(*quoted)]
        # A cache's key is a digest, too.
        if proof is Proof.KEY and name.end - name.start == 3 and literal.isalnum() and not is_mixed(literal):
            return None
        return quoted if fits(literal, proof, Where.QUOTED) else None
    blanks = SHAPES.blanks.match(text, at)
    start = blanks.end() if blanks else at
    if marked := SHAPES.tag.match(text, start):
        start = marked.end()
    where, pattern = _where(searched, name, link, start)
    value = pattern.match(text, start)
    if value is None:
        return None
    end = value.end()
    if where is Where.CODE:
        if text[end : end + 1] and text[end] in "([{<" and not text.startswith(("<br", "</"), end):
            return None
    elif not SHAPES.line_ends.match(text, end) and where is Where.FIELD:
        # Words follow: a sentence.
        where = Where.CODE
    trimmed = text[start:end]
    if where is not Where.LINE:
        trimmed = trimmed.rstrip(".,:;)]}")
    if not trimmed or text.startswith(("[REDACTED:", "**", "//"), start) or trimmed.endswith("&quot"):
        return None
    if pattern is SHAPES.argument and (text[end : end + 1] in ("(", "[", "}") or "[" in trimmed):
        return None
    if fits(trimmed, proof, where):
        return start, start + len(trimmed)
    if len(trimmed) > _LONG:
        searched.refused = end
    return None


# Names within so long a value, which is none, are not looked at.
_LONG = 200


def _where(searched: SearchedText, name: Name, link: re.Match[str], start: int) -> tuple[Where, re.Pattern[str]]:
    """Returns how a value without quotes is written, and the pattern that reads it."""
    text = searched.text
    before = text[max(0, name.start - 1) : name.start]
    separator = (link["sep"] or "").strip()[:1]
    if link["pair"]:
        return Where.FIELD, SHAPES.to_blank
    tight = link["sep"] == "=" and start == link.end() == name.end + 1
    if before == ";" and tight:
        return Where.LINE, SHAPES.piece
    head = text[max(0, name.start - 60) : name.start]
    escaped = head.rfind("\\n")
    line = max(head.rfind("\n") + 1, escaped + 2 if escaped >= 0 else 0)
    alone = (line > 0 or name.start < 60) and SHAPES.line_heads.match(head, line) is not None
    last = searched.last_of_line(start)
    if separator == "=" and link["sep"] == "=" and alone and start == link.end() and last not in (",", ")", ";", "}"):
        return Where.LINE, SHAPES.to_blank
    if tight and name.proof <= Proof.SECRET and last not in _CODE_FOLLOWS and _is_argument(text, name, before):
        return Where.LINE, SHAPES.argument
    if separator == ":" and not alone and name.proof <= Proof.SECRET and last not in _CODE_FOLLOWS:
        value = SHAPES.to_blank.match(text, start)
        alone = (
            value is not None
            and value[0] not in _KEYWORDS
            and SHAPES.line_ends.match(text, value.end()) is not None
            and SHAPES.says.match(text, max(line, name.start - 60), name.start) is not None
        )
    if separator in _OTHER_MARKS:
        ends = (value := SHAPES.to_blank.match(text, start)) is not None and SHAPES.line_ends.match(text, value.end())
        return (Where.FIELD if ends and separator not in "-–—?" else Where.CODE), SHAPES.argument
    if separator == ":" and (alone or before in "*_`"):
        return Where.FIELD, SHAPES.to_blank if last not in (",", ")", "}", "]", ";", "{", "[", "(") else SHAPES.bare
    return Where.CODE, SHAPES.bare


# Marks other than `:` and `=` before an answer: arrows of dialogs, dashes, a question mark.
_OTHER_MARKS = frozenset("›»…–—-?")


def _find_below(text: str, name: Name, below: re.Match[str]) -> Span | None:
    value = below["secret"]
    if value[-1] in ":,;{[(" or name.proof > Proof.SECRET:
        return None
    sure = below["fence"] or below["mark"]
    named = fits(value, name.proof, Where.LINE) and not is_compound(value)
    return below.span("secret") if (named if sure else is_no_word(value)) else None


def _is_argument(text: str, name: Name, before: str) -> bool:
    """Returns whether a program gets it, no call: `--set a=1,auth.password=X`, `-e PASSWORD=X`, `"DB_PASSWORD=X"`."""
    if not before or before not in "-= ,:\"'\t":
        return False
    head = text[max(text.rfind("\n", max(0, name.start - 100), name.start) + 1, name.start - 100) : name.start]
    if before in "\"'":
        return not head[:-1].rstrip().endswith(("(", ","))
    return "(" not in head


def _find_quoted(text: str, at: int) -> Span | None:
    """Returns what is in the quotes that open here, of whichever kind; None if none open, or do not close."""
    opened = SHAPES.open.match(text, at)
    if opened is None:
        return None
    quote, slashes = opened["quote"], opened["slashes"]
    start = opened.end()
    if slashes:
        end = text.find(quote, start, start + _LONGEST)
        # Deeper quotes have more backslashes.
        while end >= 0 and text[end - 1] == "\\":
            end = text.find(quote, end + 1, start + _LONGEST)
        if end < 0 or "\n" in text[start:end]:
            return None
        return (start, end) if end > start else None
    if text.startswith(quote * 2, start):
        start += 2
    inside = _QUOTED[quote].match(text, start)
    if inside is None or inside.end() == start:
        bare = SHAPES.to_blank.match(text, start) if inside is None else None
        return (start, bare.end()) if bare else None
    return inside.span()


def _element(searched: SearchedText, name: Name, at: int) -> Span | None:
    """Returns the content of an XML or HTML element with a secret's name, or under a key in a property list."""
    text = searched.text
    opens = text[max(0, name.start - 80) : name.start]
    if ("<" not in opens and "&lt;" not in opens) or opens.endswith("</"):
        return None
    data = SHAPES.cdata.match(text, at)
    inside = data or SHAPES.text.match(text, at)
    if inside is None:
        return None
    start, end = data.span(1) if data else inside.span()
    value = text[start:end]
    start += len(value) - len(value.lstrip())
    value = value.strip()
    return (start, start + len(value)) if fits(value, name.proof, Where.QUOTED) else None


def _cell(text: str, name: Name, at: int) -> Span | None:
    """Returns the next cell of a table's row after a cell that is the name."""
    line = text.rfind("\n", max(0, name.start - 200), name.start) + 1
    cell = SHAPES.cell.match(text, at)
    value = cell[0].strip(_CELL_MARKS) if cell else ""
    if cell is None or "|" not in text[line : name.start] or not value or " " in value:
        return None
    start = cell.start() + cell[0].find(value)
    if cannot_be_word(value) and fits(value, name.proof, Where.CODE):
        return start, start + len(value)
    # In a list of parameters the next word is a type.
    line_end = text.find("\n", cell.end(), cell.end() + 400)
    cells = text[line : line_end if line_end >= 0 else cell.end() + 1].strip(" \t|").count("|")
    plain = (cells == 1 or cell[0].strip()[:1] == "`") and not is_compound(value)
    sure = name.proof <= Proof.SECRET and (is_phrase(value) or plain) and fits(value, name.proof, Where.GIVEN)
    return (start, start + len(value)) if sure else None


def _block(text: str, proof: Proof, block: re.Match[str]) -> Span | None:
    start, end = block.span(1)
    start += len(block["indent"])
    lines = text[start:end].split(maxsplit=_WORDS_OF_BLOCK)[:_WORDS_OF_BLOCK]
    sure = len(lines) == 1
    return (start, end) if any(fits(line, proof, Where.LINE if sure else Where.FIELD) for line in lines) else None


_QUOTES = frozenset("\"'`")
_BEFORE_OPTION = ("", " ", "\t", "\n", '"', "'", "`", "(", "[", ",", "=", "+", ">", "n")
_HASHES = ("commit ", "hash ", "revision ", "sha ", "digest ")


def _find_spaced(searched: SearchedText, name: Name) -> Span | None:
    """Finds a value after a space: an option's value, SQL, a sentence; or before the name: «use X as token»."""
    text, proof = searched.text, name.proof
    verb = SHAPES.said.match(text, name.end) if not _is_bare_pass(text, name) else None
    if verb is not None:
        at = verb.end()
        quoted = _find_quoted(text, at)
        if quoted is not None:
            value = text[slice(*quoted)]
            sure = proof <= Proof.SECRET and fits(value, proof, Where.LINE)
            plain = " " in value or (value.isalpha() and is_vocabulary(value))
            return quoted if not plain and (is_no_word(value) or sure) else None
        return _sentence(text, at, proof, verb)
    spaced = SHAPES.spaced.match(text, name.end)
    if spaced is None:
        return None
    at = spaced.end()
    if text[name.start : name.start + 1] == "-":
        if text[name.start - 1 : name.start] in _BEFORE_OPTION:
            quoted = _find_quoted(text, at)
            if quoted is not None:
                return _if_fits(text, quoted, proof, Where.QUOTED)
            bare = SHAPES.to_blank.match(text, at)
            if bare is None or bare[0].startswith("-") or "[REDACTED:" in bare[0]:
                return None
            trimmed = bare[0].rstrip(".,:;)]}|")
            said = proof is Proof.PASSWORD and cannot_be_word(trimmed)
            given = said or fits(trimmed, proof if proof is not Proof.KEY else Proof.TOKEN, Where.CODE)
            return (at, at + len(trimmed)) if given else None
    elif text[at : at + 1] in _QUOTES and not _is_bare_pass(text, name):
        head = text[max(0, name.start - 96) : name.start]
        quoted = _find_quoted(text, at)
        if quoted is not None:
            value = text[slice(*quoted)]
            is_sql = proof is Proof.PASSWORD and SHAPES.sql_before.search(head)
            if is_sql or (proof is not Proof.KEY and SHAPES.set_before.search(head)):
                return _if_fits(text, quoted, proof, Where.QUOTED)
            said = cannot_be_word(value) and fits(value, proof, Where.CODE)
            named = proof <= Proof.SECRET and not is_compound(value) and fits(value, proof, Where.QUOTED)
            joined = proof <= Proof.TOKEN and is_phrase(value)
            return quoted if said or joined or (named and SHAPES.names_it.search(head)) else None
    elif proof is not Proof.KEY:
        return _find_after_space(text, name, at)
    return None


def _find_after_space(text: str, name: Name, at: int) -> Span | None:
    """Finds a value after nothing but a space: `ENV DB_PASSWORD X`, «log in with admin and password X»."""
    bare = SHAPES.to_blank.match(text, at)
    if bare is None or "[REDACTED:" in bare[0]:
        return None
    value = bare[0].rstrip(".,:;!?)]}")
    if (
        _is_bare_pass(text, name)
        or any(map(str.isdigit, text[name.start : name.end]))
        or value[:1] in "([{"
        or "[" in value
        or "(" in value
    ):
        return None
    given = is_no_word(value)
    head = text[max(0, name.start - 96) : name.start]
    if SHAPES.set_before.search(head):
        shell = SHAPES.shell_name.fullmatch(text, name.start, name.end) is not None
        given = given or (shell and name.proof <= Proof.SECRET and fits(value, name.proof, Where.GIVEN))
        return (at, at + len(value)) if given and fits(value, name.proof, Where.GIVEN) else None
    if name.proof is Proof.PASSWORD or SHAPES.names_it.search(head):
        return (at, at + len(value)) if given and name.proof <= Proof.TOKEN else None
    return None


def _is_bare_pass(text: str, name: Name) -> bool:
    """Returns whether `pass` is a verb: «Pass "x"»."""
    return text[name.start : name.end].lower() == "pass"


_OPEN_QUOTES = "(„“”»«‚‘›"


def _sentence(text: str, at: int, proof: Proof, verb: re.Match[str]) -> Span | None:
    value = SHAPES.to_blank.match(text, at, at + _LONG)
    if value is None:
        return None
    # Where no blanks are between words, a word of another script ends it.
    run = SHAPES.ascii_run.match(text, at)
    said = run[0] if run else value[0].rstrip(".,:;)!?]}“”»«‘‹")
    quoted = said[:1] in "„“”»«‚›" and len(value[0]) > len(said)
    while said[:1] and said[0] in _OPEN_QUOTES:
        said = said[1:]
        at += 1
    end = at + len(said)
    if said[:1] in ("{", "["):
        return None
    if cannot_be_word(said) or (
        is_phrase(said) and (not verb["sets"] or SHAPES.asked_to_set.search(text[max(0, at - 96) : at]))
    ):
        return at, end
    if proof > Proof.SECRET or is_placeholder(said):
        return None
    named = verb["names"] or verb["colon"] or (verb["particle"] and run)
    if named and not run and not SHAPES.line_ends.match(text, end) and not SHAPES.clause_ends.match(text, end):
        named = None
    if quoted or named or (verb["reset"] and SHAPES.clause_ends.match(text, end)):
        return (at, end) if not is_compound(said) and fits(said, proof, Where.GIVEN) else None
    if proof is not Proof.PASSWORD or not said.isascii() or not SHAPES.clause_ends.match(text, end):
        return None
    if verb["sets"] and not SHAPES.asked_to_set.search(text[max(0, at - 96) : at]):
        return None
    if SHAPES.word_and_number.fullmatch(said):
        return (at, end) if not is_vocabulary(said.rstrip("0123456789")) else None
    parts = said.replace("_", "-").split("-")
    plain = len(said) >= 9 and len(parts) > 1 and all(len(part) > 3 and part.isalnum() for part in parts)
    return (at, end) if plain and not is_compound(said) else None


def _find_used(text: str, place: int) -> Span | None:
    """Returns the word before «as the token»."""
    start = max(0, place - 200)
    used = SHAPES.last_word.search(text[start:place])
    if used is None or text.endswith(_HASHES, 0, start + used.start()):
        return None
    value = used["secret"]
    fitting = not is_compound(value) and fits(value, Proof.PASSWORD, Where.GIVEN)
    said = is_no_word(value) or (fitting and SHAPES.uses.search(text, start, start + used.start()))
    return (start + used.start("secret"), start + used.end("secret")) if said else None
