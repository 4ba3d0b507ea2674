"""Names files that a swap displaced by what may be in them; checks whether a process still writes to them."""

import errno
import os
import re
import sys
from hashlib import sha256
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late

_NAME = late(r"(?:\.signet-)?(\d+)-[0-9a-f]{32}-([0-9a-f]{16})-([0-9a-f]{16})-(.*)\.tmp", re.ASCII | re.DOTALL)
_ANYTHING = "0" * 16
_LONGEST = 255  # bytes that a name may have


class DisplacedName(NamedTuple):
    """What a name says: the process, the bytes that it wrote and those that it expected (digests), the file's path."""

    pid: int
    ours: str
    expected: str
    path: str

    def holds_ours(self, raw: bytes) -> bool:
        """Returns whether these bytes are those that we wrote or had read before, so that nothing is lost with them."""
        return self.expected == _ANYTHING or _digest(raw) in (self.ours, self.expected)


def name_of(temporary: str, path: str, *, ours: bytes, expected: bytes | None) -> str:
    """Makes the name of a temporary file while a swap may leave another file under it.

    A path that is too long for it is left out.
    """
    start = f"{temporary.removesuffix('.tmp')}-{_digest(ours)}-{_ANYTHING if expected is None else _digest(expected)}-"
    quoted = path.replace("%", "%25").replace("/", "%2F")
    return f"{start}{quoted if len(start) + len(os.fsencode(quoted)) + len('.tmp') <= _LONGEST else ''}.tmp"


def parse(name: str) -> DisplacedName | None:
    """Parses such a name; None for any other."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return DisplacedName(int(match[1]), match[2], match[3], match[4].replace("%2F", "/").replace("%25", "%"))


def _digest(raw: bytes) -> str:
    return sha256(raw).hexdigest()[:16]


if sys.platform == "linux":
    import fcntl
    import signal

    def has_no_writer(handle: int) -> bool | None:
        """Returns whether no process has a file open for writing, or None if the system cannot know.

        A read lease is granted on exactly that condition, and is held until the descriptor is closed: if no path leads
        to the file any more, nothing will write to it again.
        """
        try:
            # By default, breaking a lease kills its holder by a signal; this signal is ignored unless a handler is set.
            fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            return False if error.errno in (errno.EAGAIN, errno.EACCES) and _is_own(handle) else None
        return True

    def is_wanted(handle: int) -> bool:
        """Returns whether a process that had found the file under its old path waits for our lease to end."""
        return fcntl.fcntl(handle, fcntl.F_GETLEASE) != fcntl.F_RDLCK

    def _is_own(handle: int) -> bool:
        """Returns whether a refusal says anything: a lease is granted only on files of the same user."""
        return os.geteuid() in (0, os.fstat(handle).st_uid)

else:

    def has_no_writer(handle: int) -> bool | None:
        """Returns whether no process has a file open for writing: this system cannot know."""
        return None

    def is_wanted(handle: int) -> bool:
        """Returns whether a process waits for a lease of ours: there are none here."""
        return False
