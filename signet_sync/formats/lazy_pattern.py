"""Compiles a regular expression when it is first used: most patterns are not used in most processes.

Hundreds of patterns took half of the time that a command takes to load.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # same as in `typing`, without the milliseconds of importing it
if TYPE_CHECKING:
    from typing import Any, AnyStr

# Escapes and names of groups are case-sensitive.
_UPPER = re.compile(r"\\.|\(\?P[<=]\w+|[A-Z]+")
_LENT = (
    "findall", "finditer", "flags", "fullmatch", "groupindex", "groups", "match", "pattern", "scanner", "search",
    "split", "sub", "subn",
)  # fmt: skip


class Late:
    """Replaces a pattern until it is used; then its methods are those of the compiled one."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._said = text, flags

    def compiled(self) -> re.Pattern[Any]:
        """Returns the compiled pattern."""
        return re.compile(*self._said)

    def __getattr__(self, name: str) -> Any:
        """Compiles the pattern: called for attributes that are not set yet."""
        if name not in _LENT:
            raise AttributeError(name)
        pattern = self.compiled()
        vars(self).update((lent, getattr(pattern, lent)) for lent in _LENT)
        return getattr(pattern, name)


def late(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Makes a pattern that is compiled when it is first used."""
    pattern: Any = Late(text, flags)
    return pattern  # type: ignore[no-any-return]


class Caseless:
    """Searches a pattern in any case; in plain English in a third of the time.

    A printable ASCII text is searched in lower case: `\\w`, `\\b` and `\\s` mean the same there in ASCII and in
    Unicode, and no letter that the pattern names beyond ASCII can be in it.
    """

    def __init__(self, pattern: str) -> None:
        self.in_any = late(pattern, re.IGNORECASE)
        self.in_lower = late(_UPPER.sub(_lowered, pattern), re.ASCII)

    def search(self, text: str) -> re.Match[str] | None:
        """Returns the first match; only its positions may be used, not its text."""
        if text.isascii() and text.isprintable():
            return self.in_lower.search(text.lower())
        return self.in_any.search(text)


def _lowered(found: re.Match[str]) -> str:
    return found[0] if found[0][0] in "\\(" else found[0].lower()
