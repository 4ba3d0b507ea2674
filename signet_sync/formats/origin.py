"""Reads the URL of a git remote as `host/path`, equal for all its forms and without credentials."""

from __future__ import annotations

import re

from signet_sync.formats.lazy_pattern import late

_LENGTH = 1_000  # characters
_STANDARD_PORTS = {"https": "443", "http": "80", "ssh": "22", "git+ssh": "22", "ssh+git": "22", "git": "9418"}
_URL = late(r"([a-z][a-z0-9+.-]*)://([^/?#]*)([^?#]*)", re.IGNORECASE)
_SCP = late(r"(?:[^/:@]*@)?(\[[0-9a-f:.]+\]|[^/:@\[\]]+):(.*)", re.IGNORECASE)
_HOST = late(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\]")


def origin_of(url: str) -> str | None:
    """Returns `host/path` of a remote's URL, equal for all its forms; None for a local path and anything unusual.

    User, password, query and `.git` are left out, and the port if it is the usual one of its protocol.
    """
    port = ""
    remote = _URL.match(url)
    if remote is not None:
        place = remote[2].rpartition("@")[2]
        host, _, port = place.rpartition(":") if re.search(r":\d*$", place) else (place, "", "")
        path = remote[3]
        if port == _STANDARD_PORTS.get(remote[1].lower(), ""):
            port = ""
    elif (short := _SCP.fullmatch(url)) is not None:
        host, path = short[1], short[2]
    else:
        return None
    host = host.lower().rstrip(".")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    name = "/".join(parts).removesuffix(".git").rstrip("/")
    # An `@` in a path may be the end of a password with a slash.
    unusual = ".." in parts or "@" in name or "\\" in name or not name.isprintable() or len(url) > _LENGTH
    if not name or unusual or _HOST.fullmatch(host) is None:
        return None
    return f"{host}:{port}/{name}" if port else f"{host}/{name}"
