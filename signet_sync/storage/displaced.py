"""Files that a swap took out of their place: a name that says what may be in them, and whether anybody writes there."""

from __future__ import annotations

import errno
import os
import re
import sys
from hashlib import sha256
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late

_NAME = late(r"(?:\.signet-)?(\d+)-[0-9a-f]{32}-([0-9a-f]{16})-([0-9a-f]{16})-([\w.~%-]*)\.tmp", re.ASCII)
_ANYTHING = "0" * 16
_LONGEST = 255  # bytes that a name may have


class Aside(NamedTuple):
    """What a name says: whose process it was, the bytes that it wrote and those that it expected, the file's path."""

    pid: int
    ours: str
    expected: str
    path: str

    def holds_ours(self, raw: bytes) -> bool:
        """Whether bytes are those that we wrote or had read before: nobody else would miss them."""
        return self.expected == _ANYTHING or _digest(raw) in (self.ours, self.expected)


def name_of(temporary: str, path: str, *, ours: bytes, expected: bytes | None) -> str:
    """What a temporary file is called while a swap may leave another file under its name.

    A path that is too long for it is left out.
    """
    from urllib.parse import quote

    start = f"{temporary.removesuffix('.tmp')}-{_digest(ours)}-{_ANYTHING if expected is None else _digest(expected)}-"
    told = quote(os.fsencode(path), safe="")
    return f"{start}{told if len(start) + len(told) + len('.tmp') <= _LONGEST else ''}.tmp"


def parse(name: str) -> Aside | None:
    """What such a name says; None for any other."""
    from urllib.parse import unquote_to_bytes

    match = _NAME.fullmatch(name)
    return Aside(int(match[1]), match[2], match[3], os.fsdecode(unquote_to_bytes(match[4]))) if match else None


def _digest(raw: bytes) -> str:
    return sha256(raw).hexdigest()[:16]


if sys.platform == "linux":
    import fcntl
    import signal

    def has_no_writer(handle: int) -> bool | None:
        """Whether nobody has a file open for writing, or None where the system cannot tell.

        A read lease is granted on exactly that condition, and is held until the descriptor is closed: where no path
        leads to the file any more, nobody will write to it again.
        """
        try:
            # By default whoever breaks a lease ends its holder; this signal is ignored unless somebody wants it.
            fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            return False if error.errno in (errno.EAGAIN, errno.EACCES) and _is_own(handle) else None
        return True

    def is_wanted(handle: int) -> bool:
        """Whether somebody who had found the file under its old path waits for our lease to end."""
        return fcntl.fcntl(handle, fcntl.F_GETLEASE) != fcntl.F_RDLCK

    def _is_own(handle: int) -> bool:
        """A lease is given on files of one's own only: on another's, its refusal says nothing."""
        return os.geteuid() in (0, os.fstat(handle).st_uid)

else:

    def has_no_writer(handle: int) -> bool | None:
        """Whether nobody has a file open for writing: this system cannot tell."""
        return None

    def is_wanted(handle: int) -> bool:
        """Whether somebody waits for a lease of ours: there are none here."""
        return False
