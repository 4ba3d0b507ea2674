"""The unit's restrictions without systemd: `sandbox.py COMMAND…` ends as the command does.

Only local sockets (RestrictAddressFamilies), its filter of system calls, no memory that is writable and executable
(MemoryDenyWriteExecute), no new privileges, UMask. Ends with 77 where the kernel refuses one of them.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

UNIT = Path(__file__).resolve().parents[2] / "systemd/signet-sync.service"
HEADERS = ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h")
IMPOSSIBLE = 77

_SET_NO_NEW_PRIVS, _SET_SECCOMP, _SET_MDWE = 38, 22, 65
_X86_64, _SOCKET = 0xC000003E, 41
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000

libc = ctypes.CDLL(None, use_errno=True)


def must(result: int, what: str) -> None:
    if result != 0:
        refuse(what)


def refuse(what: str) -> None:
    print(f"{what}: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
    os._exit(IMPOSSIBLE)


def give_up_rights() -> None:
    """No new rights by any program; no memory that can be written and run."""
    must(libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    must(libc.prctl(_SET_MDWE, 1, 0, 0, 0), "no memory that is writable and executable")


def allowed_calls() -> list[int]:
    """The numbers of the system calls that the unit's filter lets through."""
    header = next((Path(path).read_text() for path in HEADERS if Path(path).exists()), "")
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", header)}
    allowed: set[str] = set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", UNIT.read_text(), re.MULTILINE):
        names = {name for group in line.lstrip("~").split() for name in members(group)}
        allowed = allowed - names if line.startswith("~") else allowed | names
    return sorted(numbers[name] for name in allowed if name in numbers)


def members(group: str) -> set[str]:
    if not group.startswith("@"):
        return {group}
    listed = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True)
    words = [line.strip() for line in listed.stdout.splitlines()[1:]]
    return {name for word in words if word and word[0] != "#" for name in members(word)}


def filter_calls(calls: list[int]) -> None:
    """Every other system call is refused as the unit says, and sockets that are not local."""
    if not calls:
        ctypes.set_errno(errno.ENOENT)
        refuse("the filter of system calls")
    program = [
        (0x20, 0, 0, 4), (0x15, 1, 0, _X86_64), (0x06, 0, 0, _REFUSE | errno.EPERM), (0x20, 0, 0, 0),
        (0x15, 0, 4, _SOCKET), (0x20, 0, 0, 16), (0x15, 1, 0, 1), (0x06, 0, 0, _REFUSE | errno.EAFNOSUPPORT),
        (0x06, 0, 0, _ALLOW),
    ]  # fmt: skip
    for number in calls:
        program += [(0x15, 0, 1, number), (0x06, 0, 0, _ALLOW)]
    program.append((0x06, 0, 0, _REFUSE | errno.EPERM))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    head = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    must(libc.prctl(_SET_SECCOMP, 2, head, 0, 0), "the filter of system calls")


def main() -> None:
    command, calls = sys.argv[1:], allowed_calls()
    os.umask(0o077)
    give_up_rights()
    filter_calls(calls)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
