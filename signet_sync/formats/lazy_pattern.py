"""Compiles a regular expression when it is first used: most patterns are not used in most processes.

Hundreds of patterns took half of the time that a command takes to load.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # same as in `typing`, without the milliseconds of importing it
if TYPE_CHECKING:
    from typing import Any, AnyStr


class Late:
    """Replaces a pattern until it is used; then its methods are those of the compiled one."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self.pattern, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        """Returns what the compiled pattern has, and keeps it; called for attributes that are not set yet."""
        if name.startswith("_"):
            raise AttributeError(name)
        compiled = vars(self).get("_compiled") or re.compile(self.pattern, self._flags)
        vars(self).update({"_compiled": compiled, name: getattr(compiled, name)})
        return vars(self)[name]


def late(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Makes a pattern that is compiled when it is first used."""
    pattern: Any = Late(text, flags)
    return pattern  # type: ignore[no-any-return]
