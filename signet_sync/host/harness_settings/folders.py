"""Where a person's folders are, as the environment says."""

from __future__ import annotations

import os
from collections.abc import Mapping


def home(environ: Mapping[str, str]) -> str:
    """The home folder."""
    return environ.get("HOME") or os.path.expanduser("~")
