"""Reads the URL of a git remote as `host/path`, equal for all its forms and without credentials."""

from __future__ import annotations

import re

from signet_sync.formats.lazy_pattern import late

_LENGTH = 1_000  # characters
_STANDARD_PORTS = {"https": "443", "http": "80", "ssh": "22", "git+ssh": "22", "ssh+git": "22", "git": "9418"}
# Whatever else is written may hide a credential: only these forms are read, character by character.
_HOST = r"([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?\.?|\[[0-9a-f:.]+\])"
_PATH = r"([a-z0-9._~+/-]*)"
_URL = late(rf"([a-z+]+)://(?:[^/?#]*@)?{_HOST}(?::([0-9]{{1,5}}))?/{_PATH}(?:[?#][^@]*)?", re.IGNORECASE)
_SCP = late(rf"(?:[^/:@?#]*@)?{_HOST}:(?!//){_PATH}", re.IGNORECASE)


def origin_of(url: str) -> str | None:
    """Returns `host/path` of a remote's URL, equal for all its forms; None for a local path and anything unusual.

    It is of small letters: hosts of repositories know a name in any case.

    User, password, query and `.git` are left out, and the port if it is the usual one of its protocol. An `@` or a
    colon after the host may be the end of a password, so that nothing is read.
    """
    if len(url) > _LENGTH or not url.isascii():
        return None
    port = ""
    if (remote := _URL.fullmatch(url)) is not None:
        scheme, host, port, path = remote[1].lower(), remote[2], remote[3] or "", remote[4]
        if scheme not in _STANDARD_PORTS:
            return None
        if port == _STANDARD_PORTS[scheme]:
            port = ""
    elif (short := _SCP.fullmatch(url)) is not None:
        host, path = short[1], short[2]
        # `https:/…`, with a slash too few.
        if host.lower() in (*_STANDARD_PORTS, "file", "ftp", "ftps"):
            return None
    else:
        return None
    host = host.lower().rstrip(".")
    parts = [part for part in path.lower().split("/") if part not in ("", ".")]
    name = "/".join(parts).removesuffix(".git").rstrip("/")
    if not name or ".." in parts:
        return None
    return f"{host}:{port}/{name}" if port else f"{host}/{name}"
