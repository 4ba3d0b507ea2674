"""The deterministic sanitizer: newlines, control characters, secrets, body normalisation.

Contract: *Sanitizer* and *Secrets*. What counts as a secret stands in `secrets.toml`. The table is part of the version:
once `v1` is released, changing a rule means `v2` with a migration note, because artifacts that were written under `v1`
stay as they are. Rows follow at once: a full pass that finds another `sanitizer_stamp` on them derives them anew.

How it works. Each rule belongs to a *look*: one cheap pass that says whether any of its rules is worth running. The
passes lean on what is fast in CPython: `str.find` and `str.replace` of one character (`memchr`), and `re` with a
pattern that opens with one literal character. Almost all tokens have a mark behind their prefix (`ghp_`, `sk-`, `SG.`),
so the marks are folded into one and looked at in one pass; everything that is assigned stands behind `:` or `=`, which
is the second. Only rules whose look fired run in full, in the order of the table, and the secret part of a match gives
way to `[REDACTED:<rule>]`: no length, no prefix, no hash of what stood there.

All patterns are linear: no run can be split in two ways, and a run that may be refused after it was read is bounded or
must start at a boundary, so that it is read once.

Decisions that a reader of the output may ask about:

* Documented examples (`AKIAIOSFODNN7EXAMPLE`) go like any other key: nobody is hurt, and there is no list to keep.
* An assigned value goes only if it looks like a secret: variables, calls, placeholders, numbers, dates, paths, chains
  of words, UUIDs, our own 16-character session tokens and anything with a blank in it stay.
* Of a URL only the password goes, of a webhook its path, of a header the credential, of a private key all of it.
* VT, FF, FS to US, NEL, LS and PS part words or lines and become a blank; every other control character but LF and
  tab leaves nothing behind, so that it cannot split a secret.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator

from signet_sync.contracts.bodies import normalize, well_formed
from signet_sync.contracts.secret_rules import Rule, rules, table_digest
from signet_sync.contracts.secret_shapes import AROUND, VALUE, Span, decoded_text, name_before, names_secret

SANITIZER_VERSION = "sanitize_transcript_v1"

_ALNUM = "A-Za-z0-9"
_URLSAFE = "A-Za-z0-9_-"


def sanitizer_stamp() -> str:
    """Names the sanitizer that made a text: its version and the digest of its table.

    Derived text that carries another stamp is made anew. The version alone would do for what was released; the digest
    makes that hold for each change of the table.
    """
    return f"{SANITIZER_VERSION} {table_digest()}"


# ── the looks ──

_PIECE = 1_000_000


def _pieces(text: str, margin: int) -> Iterator[str]:
    """A long text in pieces that overlap by a margin: the memory of small copies is used again, and warm."""
    if len(text) <= _PIECE:
        yield text
        return
    for start in range(0, len(text), _PIECE):
        yield text[max(0, start - margin) : start + _PIECE + margin]


def _behind(*literals: str) -> str:
    """One of these stands before this place (`re` wants look-behinds of one width each)."""
    return "(?:" + "|".join(f"(?<={literal})" for literal in literals) + ")"


# `-` and `.` are folded into `_`, so that one literal leads to every token with a prefix.
_PREFIXES = _behind(
    *("gh[pousr]_", "gl(?:pat|cbt|ptt|oas|imt)_", "gl(?:dt|rt|ft)_", "glsoat_", "glagent_", "xox[a-z]_", "xapp_"),
    *("GOCSPX_", "ya29_", "[sr]k_(?:live|test)_", "whsec_", "SG_", "npm_", "pypi_", "hf_", "_org_", "do[opr]_v1_"),
    *("hv[sbr]_", "KEY_", "pplx_", "gsk_", "xai_", "lin_api_", "lin_oauth_", "secret_", "ntn_", "sbp_", "_pat_"),
    *("sk_ant_", "glsa_", "shp(?:at|ca|pa|ss)_", "gems_", "PMAK_"),
)
_DISCORD = rf"(?=[{_ALNUM}_]{{6,7}}_[{_ALNUM}_]{{16}})" + _behind(
    *(f"[MNO][{_ALNUM}_]{{{length}}}_" for length in range(22, 28))
)
_MARKED = re.compile(
    rf"_(?:(?<=[{_ALNUM}]_)(?=[{_ALNUM}_+/]{{16}})(?:{_PREFIXES}|(?<=sk_)(?<![a-mo-qsu-z]sk_)"
    rf"|(?<=key_)(?=[0-9a-f]{{16}})|{_DISCORD})"
    r"|BEGIN[ +%](?<=_____BEGIN.)|slack_com/|com/api/webhooks/|u[ =](?<=\s_u.)|user[ =](?<=\s__user.))"
)


def _marked(text: str) -> bool:
    # A mark and what must stand around it are shorter than the margin.
    return any(_MARKED.search(piece.replace("-", "_").replace(".", "_")) for piece in _pieces(text, 64))


# `=` is folded into `:`. The last three letters of every name that `_given` asks for, roughly first, since most words
# are refused by that; up to three quotes, blanks or brackets may stand between name and mark, more is looked at anyway.
_LAST_THREE = ("ord", "swd", "ase", "pwd", "ass", "ret", "ken", "key", "ial", "als", "uth", "ion", "kie", "sig")


def _either_case(letters: Iterable[str]) -> str:
    return "[" + "".join(sorted({case for letter in letters for case in (letter, letter.upper())})) + "]"


_ROUGHLY = "".join(map(_either_case, zip(*_LAST_THREE, strict=True)))
_EXACTLY = "(?:" + "|".join("".join(map(_either_case, ending)) for ending in _LAST_THREE) + ")"
_HEADERS = ("authorization", "cookie", "sig")
_HEADER_ENDS = "[ikIKsS][oiOI][negNEG]"
_GIVEN = re.compile(
    rf":(?:(?:(?<={_ROUGHLY}:)(?<={_EXACTLY}:)|(?<={AROUND}:)(?:(?<={_ROUGHLY}{AROUND}:)(?<={_EXACTLY}{AROUND}:)"
    rf"|(?<={AROUND}{{2}}:)(?:(?<={_EXACTLY}{AROUND}{{2}}:)|(?<={AROUND}{{3}}:))))"
    rf"(?:{VALUE}|" + "|".join(rf"(?<={_HEADER_ENDS}{AROUND}{{{n}}}:)" for n in range(4)) + "))"
    rf"|:(?<=[0-9]:)(?=AA[{_URLSAFE}]{{16}})"
)


def _given(text: str) -> bool:
    for match in _GIVEN.finditer(text.replace("=", ":")):
        at = match.start()
        name = name_before(text, at)
        if name.endswith(_HEADERS) or (match["secret"] and names_secret(name)) or text.startswith(":AA", at):
            return True
    return False


# Any run of 40 characters covers a whole block of 20, wherever the blocks begin: most blocks of prose are refused after
# a word, by the test for blanks since it is the quicker one, and the rest of them is leapt over.
_LEAPING = re.compile(r"(?s)(?:(?!(?=\S{20})[A-Za-z0-9+/]{20}).{20})*+(?=[A-Za-z0-9+/]{20})")
_RUN = re.compile(r"[A-Za-z0-9+/]*+")
_LONG_RUN = re.compile(r"[A-Za-z0-9+/]{40,}")
# Before 3.11.5 a possessive group may stop short of what it matches.
_MAY_LEAP = sys.version_info >= (3, 11, 5)
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _encoded(text: str) -> bool:
    """Whether some run of base64 holds text."""
    if not _MAY_LEAP:
        return any(decoded_text(run[0]) for run in _LONG_RUN.finditer(text))
    at = 0
    while block := _LEAPING.match(text, at):
        # The run may have begun in the block before.
        before = text[max(at, block.end() - 20) : block.end()]
        start = block.end() - len(before) + len(before.rstrip(_BASE64))
        run = _RUN.match(text, start)
        at = run.end() if run else len(text)
        if run and at - start >= 40 and decoded_text(run[0]):
            return True
    return False


# The looks by the names that the table gives them.
_MARK, _ASSIGN, _ENCODED = "mark", "assign", "base64"
_LITERALS = {
    "A": re.compile(r"A(?=(?:KI|SI|BI|CC)A[A-Z0-9]{10}|Iza|BSK|TATT3)"),
    "J": re.compile(r"J(?:(?<=eyJ)|(?<=CRUdJ))"),
    "K": re.compile(r"K(?:(?<=ZXlK)|(?<=SK)(?=[0-9a-f]{16}))"),
    "~": re.compile(r"~(?<=Q~)"),
    "@": re.compile(r"@"),
    "dapi": re.compile(r"dapi(?=[0-9a-f]{16})"),
    "%": re.compile(r"%(?:40|2[BFbf]|3[ADad])"),
}


def _looks(text: str) -> set[str]:
    """The looks that fired. A rule matches only where its look fires (held by a test)."""
    fired = {literal for literal, pattern in _LITERALS.items() if literal in text and pattern.search(text)}
    if _marked(text):
        fired.add(_MARK)
    if _given(text):
        fired.add(_ASSIGN)
    if _encoded(text):
        fired.add(_ENCODED)
    return fired


# ── the work ──


def _candidates(text: str) -> list[Rule]:
    """The rules that may match, in the order of the table."""
    fired = _looks(text)
    if not fired:
        return []
    return [
        rule
        for rule in rules()
        if rule.look in fired and (not rule.keywords or any(word in text for word in rule.keywords))
    ]


def _spans(rule: Rule, text: str) -> Iterator[Span]:
    search, check, at = rule.pattern.search, rule.check, 0
    while match := search(text, at):
        span = check(match)
        # A pattern may only look at its secret: what was found once is not read again.
        at = max(match.end(), span[1]) if span else match.end()
        if span:
            yield span


def _apply(rules: Iterable[Rule], text: str, counts: dict[str, int]) -> str:
    for rule in rules:
        parts: list[str] = []
        end = 0
        for start, stop in _spans(rule, text):
            parts += text[end:start], f"[REDACTED:{rule.name}]"
            end = stop
        if parts:
            counts[rule.name] = counts.get(rule.name, 0) + len(parts) // 2
            text = "".join(parts) + text[end:]
    return text


def redact(text: str) -> tuple[str, dict[str, int]]:
    """The text with every secret replaced by `[REDACTED:<rule>]`, and how often each rule did so.

    Where nothing was found the very same object comes back. Idempotent: it goes on until a look finds nothing; each
    round takes text away outside the marks and no rule reaches into a mark, so that it ends (in practice at once).
    """
    counts: dict[str, int] = {}
    while rules := _candidates(text):
        redacted = _apply(rules, text, counts)
        if redacted is text:
            break
        text = redacted
    return text, counts


def suspects(text: str) -> bool:
    """Whether `redact` would replace anything (note `secret-suspected`)."""
    return any(True for rule in _candidates(text) for _ in _spans(rule, text))


def extent(text: str, *, without: str = "") -> Span | None:
    """From the first secret's begin to the last one's end, or None; one rule may be left out."""
    spans = [span for rule in _candidates(text) if rule.name != without for span in _spans(rule, text)]
    return (min(start for start, _ in spans), max(end for _, end in spans)) if spans else None


# ── control characters ──

# VT, FF, the separators FS to US, NEL, LS and PS part words or lines: a blank takes their place. The others, and the
# bidirectional embeddings, overrides and isolates, leave nothing behind, so that they cannot split a secret either.
_PARTING = "\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"
_ASCII_CONTROLS = tuple(chr(c) for c in (*range(9), *range(11, 32), 127))
_ASCII_CONTROLS_UTF8 = "".join(_ASCII_CONTROLS).encode()
# In UTF-8: C1; LS, PS and the bidirectional ones. A literal at the front of each lets the search leap.
_C1 = re.compile(b"\xc2[\x80-\x9f]")
_DIRECTIONS = re.compile(b"\xe2(?:\x80[\xa8-\xae]|\x81[\xa6-\xa9])")
_REPLACED = {
    **dict.fromkeys((*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))),
    **{ord(c): " " for c in _PARTING},
}


def _has_controls(text: str) -> bool:
    return any(map(_piece_has_controls, _pieces(text, 0)))


def _piece_has_controls(text: str) -> bool:
    if text.isascii():
        # Thirty searches for one character are five times as fast as one search for thirty.
        return any(map(text.__contains__, _ASCII_CONTROLS))
    try:
        raw = text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return True
    return bool(len(raw.translate(None, _ASCII_CONTROLS_UTF8)) < len(raw) or _C1.search(raw) or _DIRECTIONS.search(raw))


def _without_controls(text: str) -> str:
    """Newlines to LF, then no C0 but LF and tab, no DEL, no C1, no bidi control, no lone surrogate (U+FFFD)."""
    if not _has_controls(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return well_formed(text.translate(_REPLACED))


def without_controls(text: str) -> str:
    """The text as its secrets are looked for: without control characters, newlines as LF."""
    return _without_controls(text)


def sanitize_counted(text: str) -> tuple[str, dict[str, int]]:
    """What `sanitize_transcript_v1` gives, and how often each rule replaced something."""
    clean, counts = redact(_without_controls(text))
    return normalize(clean), counts


def sanitize_transcript_v1(text: str) -> str:
    """Newlines, control characters, secrets, body normalisation, in this order, for every text of many lines we write.

    Pure, deterministic, idempotent and total: any `str` will do, lone surrogates become U+FFFD.
    """
    return sanitize_counted(text)[0]


def sanitize_normalized(text: str) -> str:
    """`sanitize_transcript_v1` for a body that is normalised already: the same result, the same object when clean."""
    clean = redact(_without_controls(text))[0]
    return text if clean is text else normalize(clean)


def sanitize_line_counted(text: str) -> tuple[str, dict[str, int]]:
    """What `sanitize_line` gives, and how often each rule replaced something."""
    text, counts = redact(_without_controls(text))
    if "\n" in text or "\t" in text:
        text, more = redact(text.replace("\n", " ").replace("\t", " "))
        for name, count in more.items():
            counts[name] = counts.get(name, 0) + count
    return text.strip(" "), counts


def sanitize_line(text: str) -> str:
    """The same for a value of one line (sentence, project, key): newlines and tabs become blanks, none at the ends.

    Secrets are looked for before and after that: a token broken over two lines is known only before, `password:`
    above its value only after.
    """
    return sanitize_line_counted(text)[0]
