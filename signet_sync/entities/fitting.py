"""An agent's text made to fit into a section: it can forge no section, no anchor, no item, and hide nothing."""

from __future__ import annotations

from typing import NewType

# Text that has been through `fit` or `fit_item`, now or when the event that carries it was recorded.
Fitted = NewType("Fitted", str)


def fit(text: str) -> tuple[Fitted, tuple[str, ...]]:
    """A narrative, and what was changed in it, said to a person. Idempotent. Raises `UsageError` (`text-empty`)."""
    raise NotImplementedError


def fit_item(text: str) -> Fitted:
    """The text of one list item, on one line. Idempotent. Raises `UsageError` (`text-empty`)."""
    raise NotImplementedError


def fit_title(text: str) -> str:
    """The title of a profile, on one line. Raises `UsageError` (`text-empty`)."""
    raise NotImplementedError
