"""One hit of `recall` on a memory."""

from typing import NamedTuple


class RecallEvent(NamedTuple):
    """The query as stored, its score (0 to 1), microseconds since 1970 UTC."""

    query: str
    score: float
    at_us: int
