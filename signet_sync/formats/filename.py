"""Reads and writes file names `{captured_at with ':' as '-'}--{token}--{kind}.md`; classifies all others."""

import re
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import AGENT, MEMORY

IMMUTABLE_KINDS: frozenset[str] = frozenset({"summary", "transcript", "compaction"})

TOKEN = late(r"[a-z2-7]{16}", re.ASCII)

_ARTIFACT = late(
    r"(\d{4}-\d\d-\d\dT.*)--([a-z2-7]{16})--(summary|transcript|compaction|manifest)\.md",
    re.ASCII | re.DOTALL,
)
_TOMBSTONE = late(rf"({AGENT})--([a-z2-7]{{16}})\.md", re.ASCII)
# An artifact's name with something before its ending: how cloud services, file managers and editors name copies.
_COPY = late(
    r"\d{4}-\d\d-\d\dT.*--([a-z2-7]{16})--(?:summary|transcript|compaction|manifest)([^/]+)",
    re.ASCII | re.DOTALL,
)
_NAMED = late(rb"(\d{4}-\d\d-\d\dT[^\s/|\[\]]{1,60}?--([a-z2-7]{16})--(?:summary|transcript|compaction|manifest)\.md)")
_BEFORE_KIND = late(r"--([a-z2-7]{16})(?=--(?:summary|transcript|compaction|manifest))")
_TOMBSTONE_COPY = late(rf"{AGENT}--([a-z2-7]{{16}})([^/]+)", re.ASCII | re.DOTALL)
_CONFLICT_MARK = late(
    r"conflicted[ _-]copy|conflict copy|\.sync-conflict-|\(\d+\)(?=[.-]|$)|case conflict|\.conflict\b|_conflict-\d"
    # What Dropbox writes in brackets, in the language of the machine: Cyrillic, Japanese, Chinese, Korean at the end.
    r"|\([^()]*(?:[ck]onfli[ck]?t|\u043a\u043e\u043d\u0444\u043b\u0438\u043a\u0442|\u7af6\u5408"
    r"|[\u51b2\u885d]\u7a81|\ucda9\ub3cc)[^()]*\)",
    re.IGNORECASE | re.ASCII,
)
# OneDrive appends the computer's name.
_COMPUTER = late(r"-(?:[A-Z][A-Z0-9-]{0,14}|[\w-]*Mac[\w-]*)", re.ASCII)
_COUNTED_COPY = late(r" \d{1,3}(?:\.md)?$", re.ASCII)
_TEMPORARY = late(
    r"""\.tmp(?:$|[-.]) | ~$ | ^~\$ | ^\.\# | ^\#.*\#$ | \.sw[a-z]$ | ^4913$ | ^\.goutputstream- | ___jb_(?:tmp|old)___$
      | ^\.syncthing\. | ^~syncthing~ | ^\.unison\. | ^\.mutagen-temporary- | ^\.~lock | ^\._ | \.part(?:ial)?$
      | \.(?:[a-z]+-|cr)?download$ | \.sb-[0-9a-f]{8}-\w{6}$ | ^\.~ | \.~[0-9a-f]+$ | ^\..+\.md\.[A-Za-z0-9]{6}$
      | ^\.dropbox | ^\.signet- """,
    re.VERBOSE | re.ASCII,
)


class ArtifactName(NamedTuple):
    """The parts of an artifact's name: its stamp as written, the token, the kind."""

    stamp: str
    token: str
    kind: str


def artifact_name(name: str) -> ArtifactName | None:
    """Parses a name that is ours to read (by Signet's own scan rule: the last token counts), else None.

    A name with a conflict mark in its stamp is not ours: it is a copy made by a sync service.
    """
    if not name.endswith(".md"):
        return None
    match = _ARTIFACT.fullmatch(name)
    if match is None or has_conflict_mark(match[1]):
        return None
    return ArtifactName(match[1], match[2], match[3])


def segment_of(path: str) -> str:
    """Returns what the artifacts of one segment share: a path without its kind."""
    return path.rpartition("--")[0] or path


def is_artifact_path(path: str) -> bool:
    """Returns whether a path relative to the workspace is that of an artifact."""
    folder, _, name = path.rpartition("/")
    return folder == MEMORY and artifact_name(name) is not None


def matches_scan_rule(name: str) -> bool:
    """Returns whether a name matches Signet's scan rule, with or without conflict marks (vectors: `scan_regex`)."""
    return _ARTIFACT.fullmatch(name) is not None


def artifact_file_name(captured_at: str, token: str, kind: str) -> str:
    """Returns the name that we write for a timestamp as it is in the frontmatter."""
    return f"{captured_at.replace(':', '-')}--{token}--{kind}.md"


def tombstone_name(name: str) -> tuple[str, str] | None:
    """Returns agent and token of a name in `memory/tombstones/`, else None."""
    match = _TOMBSTONE.fullmatch(name)
    return (match[1], match[2]) if match else None


def tombstone_file_name(agent_id: str, token: str) -> str:
    """Returns the name of the tombstone file of an agent's token."""
    return f"{agent_id}--{token}.md"


def has_conflict_mark(text: str) -> bool:
    """Returns whether a sync service or file manager marked this name as a copy."""
    if "onflict" not in text and "(" not in text and " " not in text and "ONFLICT" not in text:
        return False
    return _CONFLICT_MARK.search(text) is not None or _COUNTED_COPY.search(text) is not None


def is_copy_mark(text: str) -> bool:
    """Returns whether a sync service or file manager put this between the stem of a name of ours and its ending."""
    return has_conflict_mark(text) or _COMPUTER.fullmatch(text) is not None


def find_ignored_code(name: str) -> str:
    """Returns why a name that is not ours is ignored: `temporary` precedes `conflict-copy` precedes `foreign-name`.

    The placeholder of a file that is only in iCloud (`.name.icloud`) counts as a copy.
    """
    stem = name[:-3] if name.endswith(".md") else name
    if name.startswith(".") and name.endswith(".icloud"):
        return "conflict-copy"
    if _TEMPORARY.search(name):
        return "temporary"
    copy = _COPY.fullmatch(name) or _TOMBSTONE_COPY.fullmatch(name)
    named = copy is not None and name.endswith(".md") and copy[2] != ".md"
    marked = has_conflict_mark(stem) or (matches_scan_rule(name) and artifact_name(name) is None)
    return "conflict-copy" if named or marked else "foreign-name"


def find_carried_token(name: str) -> str | None:
    """Returns the token in an ignored name (a conflict copy of an artifact), else None."""
    found = _BEFORE_KIND.findall(name) or re.findall(r"--([a-z2-7]{16})(?=--|[^a-z2-7])", name)
    return found[-1] if found else None


def names_in(text: bytes) -> set[tuple[str, str]]:
    """Returns every artifact that a text names, as its links do: names and their tokens."""
    return {(name.decode("utf-8", "replace"), token.decode("ascii")) for name, token in _NAMED.findall(text)}
