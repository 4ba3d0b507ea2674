"""Finds the user's folders from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping


def home(environ: Mapping[str, str]) -> str:
    """Returns the home folder."""
    return environ.get("HOME") or os.path.expanduser("~")
