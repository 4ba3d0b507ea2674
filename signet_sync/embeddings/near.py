"""Asks how near texts are to a question's meaning; only the agent can tell. Imports nothing."""

from collections.abc import Callable, Sequence

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from signet_sync.embeddings.vectors import Nearness
    from signet_sync.storage.database.connection import Database

Tell = Callable[["Database", Sequence[tuple[int, int]], str, bool], "Nearness | None"]
_tell: Tell | None = None


def let_tell(tell: Tell | None) -> None:
    """Lets the agent's model tell it to everything in this process."""
    global _tell
    _tell = tell


def near(
    database: "Database", ranges: Sequence[tuple[int, int]], question: str, *, at_once: bool = False
) -> "Nearness | None":
    """Returns how near the texts of some ranges are to a question; None where no agent's model tells it in time.

    With `at_once` no server is asked.
    """
    return None if _tell is None else _tell(database, ranges, question, at_once)
