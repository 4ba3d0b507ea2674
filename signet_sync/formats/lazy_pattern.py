"""Compiles a regular expression when it is first used: most patterns are not used in most processes.

Hundreds of patterns took half of the time that a command takes to load.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # same as in `typing`, without the milliseconds of importing it
if TYPE_CHECKING:
    from typing import Any, AnyStr

_LENT = (
    "findall", "finditer", "flags", "fullmatch", "groupindex", "groups", "match", "scanner", "search", "split", "sub",
    "subn",
)  # fmt: skip


class Late:
    """Replaces a pattern until it is used; then its methods are those of the compiled one."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self.pattern, self._flags = text, flags

    def compiled(self) -> re.Pattern[Any]:
        """Returns the compiled pattern."""
        return re.compile(self.pattern, self._flags)

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
