"""Defines one tree of exceptions; each has the path it is about and a hint: what the person does next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class SignetSyncError(Exception):
    """Base of everything that signet-sync raises on purpose.

    `code` is stable and machine-readable, `exit_code` is that of the process.
    `details` are added beside the error in a JSON answer. `suggestions` are names that may have been meant.
    """

    code = "error"
    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        hint: str = "",
        code: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.hint = hint
        self.details = details or {}
        self.suggestions: tuple[str, ...] = ()
        if code is not None:
            self.code = code


class UsageError(SignetSyncError):
    """A request that cannot be met: an unknown or ambiguous name, bad configuration, a wrong flag."""

    code = "usage"
    exit_code = 2


class ConfigError(UsageError):
    """A setting that does not exist or has a value of the wrong kind."""

    code = "config-invalid"


class WorkspaceError(SignetSyncError):
    """The workspace cannot be used: missing, not a folder, not readable, not writable."""

    code = "workspace-unusable"


class Unreachable(SignetSyncError):
    """A remote workspace does not answer; unlike a file that cannot be read, this says nothing about the workspace."""

    code = "unreachable"


class PathEscape(WorkspaceError):
    """A path that would leave the workspace, or passes through a symlink."""

    code = "path-escape"


class DatabaseError(SignetSyncError):
    """The database cannot be used: locked for too long, not writable, disk full."""

    code = "database-unusable"


class DatabaseCorrupt(DatabaseError):
    """The database's bytes are damaged; it is moved aside and rebuilt from the files."""

    code = "database-corrupt"


class HarnessError(SignetSyncError):
    """A transcript or store of a harness cannot be read: missing, no regular file of the user's, unknown format."""

    code = "transcript-unreadable"
    exit_code = 2


class ProviderError(SignetSyncError):
    """A language model returned no usable answer in time; the message never holds a key, a prompt or an answer."""

    code = "provider-failed"


class AnotherAgent(SignetSyncError):
    """Another `run` holds this workspace."""

    code = "another-agent"
    exit_code = 4


class Halted(SignetSyncError):
    """A safety stop with a name: nothing was dropped, a person decides."""

    code = "halted"
    exit_code = 5


class LeaseBusy(SignetSyncError):
    """Another process holds the lease of a page; the write is postponed, not lost."""

    code = "lease-busy"


class RevisionConflict(SignetSyncError):
    """A manifest kept changing during compare-and-swap until the bounded retries were used up."""

    code = "revision-conflict"


class Interrupted(SignetSyncError):
    """A pass was asked to stop between two batches; its transaction was rolled back."""

    code = "interrupted"
    exit_code = 130


def add_suggestions(error: UsageError, names: Sequence[str]) -> UsageError:
    """Adds to an error which names may have been meant; returns it."""
    if names:
        error.suggestions = tuple(names)
        error.hint = f"did you mean {' or '.join(names)}? {error.hint}".rstrip()
    return error


def reason(error: SignetSyncError | OSError) -> str:
    """Returns why something failed, without Python's error number and the path, which callers show separately."""
    return error.message if isinstance(error, SignetSyncError) else error.strerror or type(error).__name__


def place_of(error: Exception) -> str:
    """Names the type of an unexpected error and the line that raised it, without any value."""
    from traceback import extract_tb  # slow to load, and for unexpected errors only

    frame = extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {frame.filename.rpartition('/')[2]}:{frame.lineno}"


def sentence_of(error: SignetSyncError | OSError) -> str:
    """Returns what went wrong, and the remedy, in one line."""
    if isinstance(error, OSError):
        return str(error)
    return f"{error.message} ({error.hint})" if error.hint else error.message


def extra_hint(extra: str) -> str:
    """Returns how to add an optional feature, whichever of three programs installed signet-sync."""
    return f"pip install 'signet-sync[{extra}]' into its environment (or: pipx install --force, uv tool install)"
