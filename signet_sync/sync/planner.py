"""Decides, without I/O, the verdict of every file with its row and seal, what is removed, and whether the pass halts.

Three pure steps, so that a vault of any size is judged in batches: `plan` decides from names and signatures what must
be read and whether the pass must halt; `judge` gives each file that was read its one verdict with its row and seal;
`judge_missing` does the same for a missing file.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from signet_sync.formats import filename, paths
from signet_sync.formats.artifact import Content, FieldProblem, Manifest, Tombstone, read_artifact
from signet_sync.formats.body import normalize, text_sha256
from signet_sync.formats.filename import IMMUTABLE_KINDS, ArtifactName, artifact_name
from signet_sync.formats.frontmatter import FrontmatterProblem, open_source, parse, read, unpack_seal
from signet_sync.formats.ids import UUID, token_matches, token_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import AGENT_ID, MEMORY, TOMBSTONES
from signet_sync.formats.snapshot import STRANGE_NAME, Found, Signature, Snapshot, Trouble
from signet_sync.formats.timestamps import day_of, parse_name_stamp
from signet_sync.sync.index_records import HEADLESS, NOTHING, Cliff, Judgement, Known, NoiseRule, Note, Row, Seal
from signet_sync.text.digest_mark import is_headless, says_nothing
from signet_sync.text.redaction import redacts
from signet_sync.text.redaction import rules as redaction_rules
from signet_sync.text.sanitizer import sanitize_line, sanitize_normalized
from signet_sync.text.sentences import SentenceSubject, acceptable, fallback
from signet_sync.text.stored_names import session_name, session_value

_BURIED = f"{TOMBSTONES}/"

HINTS: dict[str, str] = {
    "frontmatter-missing": "restore the file from a copy, or move it out of memory/ if it is a note of your own",
    "frontmatter-invalid": "fix the named line, or restore the file from a copy",
    "field-missing": "restore the file from a copy; every artifact carries all fields of its kind",
    "field-invalid": "restore the file from a copy, or fix the named field",
    "hash-mismatch": "restore the file from a copy or from your sync service's history",
    "kind-mismatch": "give the file its old name back",
    "token-mismatch": "give the file its old name back; the token belongs to its agent and session",
    "captured-at-mismatch": "give the file its old name back; the name starts with captured_at",
    "agent-invalid": "agent ids are lower-case letters, digits, - and _, at most 64",
    "not-utf8": "save the file as UTF-8, or restore it from a copy",
    "too-large": "move the file away, or raise reconcile.max_file_bytes",
    "path-escape": "the link must be a path inside the workspace, such as memory/….md",
    "not-a-file": "put the real file in its place; links and other things are never followed",
    "unreadable": "check the file's permissions and the disk; its last good state stays in the index",
    "tombstone-invalid": "restore the tombstone file from a copy; while it cannot be read its name decides",
    "mutated": "signet-sync violations list PATH, then restore or accept it",
    # In place of "mutated" if what is there is not a file.
    "replaced": "move it away, then: signet-sync violations restore PATH",
    "vanished": "signet-sync violations restore PATH brings it back, accept confirms that it is gone; signet-sync"
    " remove removes the whole session",
    "conflict-copy": "compare it with the original and delete the one you do not want",
    "foreign-name": "not one of our files; it is left alone",
    "temporary": "a temporary file of another program; it is left alone",
    "tombstoned": "delete it, or let signet-sync reindex or the running agent do so",
}


class Plan:
    """What is decided from names and signatures alone."""

    def __init__(self) -> None:
        self.read = list[str]()
        self.judged = list[Judgement]()
        self.gone = list[str]()
        self.unchanged = self.scanned = 0
        self.cliff: Cliff | None = None


# Missing files halt a pass if they are more than this part of all, and at least so many.
CLIFF_FRACTION, CLIFF_MINIMUM = 0.5, 20


class Tombstones:
    """The tombstones in force, by token; several agents may share a token only by accident."""

    def __init__(self, tombstones: "Collection[Tombstone]" = (), *, by_name: Collection[tuple[str, str]] = ()) -> None:
        self.tombstones = tuple(tombstones)
        self._by_token: dict[str, list[Tombstone]] = {}
        for tombstone in tombstones:
            self._by_token.setdefault(tombstone.session_token, []).append(tombstone)
        # A tombstone file that cannot be read still removes: its name contains agent and token.
        self._by_name: dict[str, list[str]] = {}
        for agent_id, token in by_name:
            self._by_name.setdefault(token, []).append(agent_id)

    @property
    def tokens(self) -> frozenset[str]:
        """Returns every token that a tombstone names."""
        return frozenset(self._by_token) | frozenset(self._by_name)

    def __bool__(self) -> bool:
        return bool(self._by_token or self._by_name)

    def cover_session(self, token: str, agent_id: str | None, session_id: str | None, key: str | None = None) -> bool:
        """Returns whether a session is removed, by the token of its files, of its id or of its key."""
        identities = (session_id, key) if agent_id is not None else ()
        tokens = (token, *(token_of(agent_id or "", one) for one in identities if one is not None))
        return any(self.cover(one, agent_id, session_id) for one in tokens)

    def cover(self, token: str, agent_id: str | None, session_id: str | None) -> bool:
        """Returns whether a session is removed by one token; if agent or id is unknown, the token decides."""
        tombstones = self._by_token.get(token, ())
        if any(tombstone.covers(agent_id, session_id) for tombstone in tombstones):
            return True
        if session_id is not None and any(tombstone.covers(agent_id, _name(session_id)) for tombstone in tombstones):
            return True
        return any(agent_id is None or agent_id == other for other in self._by_name.get(token, ()))


def plan(
    snapshot: Snapshot,
    known: Mapping[str, Known],
    tombstones: Tombstones,
    *,
    reread: Collection[str] = (),
    covered_rows: int = 0,
    indexed: int | None = None,
    halts: bool = True,
) -> Plan:
    """Sorts every path of a snapshot into unchanged, to be read, judged by its name, or gone.

    `known` must hold every known path for a full snapshot, otherwise the requested ones; `indexed` is the number of
    indexed files in the whole index, `covered_rows` how many of the missing ones tombstones explain. Without `halts`
    the cliff is not checked (a person accepted the removals).
    """
    result = Plan()
    tokens = tombstones.tokens
    ours = unchanged = 0
    look_closer = bool(tokens or reread)
    for path, signature in snapshot.files.items():
        before = known.get(path)
        if (
            before is not None
            and before.signature == signature
            and (verdict := before.verdict) != "tombstoned"
            and not (look_closer and (path in reread or (tokens and filename.find_carried_token(path) in tokens)))
            and not path.startswith(_BURIED)
        ):
            if verdict == "indexed":
                unchanged += 1
            if verdict != "ignored":
                ours += 1
            continue
        if path.startswith(_BURIED):
            continue
        name = path.rpartition("/")[2]
        if artifact_name(name) is not None:
            ours += 1
            result.read.append(path)
            continue
        code = filename.find_ignored_code(name)
        token = filename.find_carried_token(name) if tokens else None
        if token in tokens and code in ("conflict-copy", "temporary"):  # sync services leave whole files behind
            result.read.append(path)
        else:
            result.judged.append(Judgement(path, "ignored", code, _describe_ignored(code), signature))
    result.scanned = len(snapshot.files)
    result.unchanged = unchanged
    ours += _plan_odd(snapshot.odd, result)
    candidates = known if snapshot.everything else [path for path in snapshot.asked if path in known]
    present = snapshot.files.keys() | snapshot.odd.keys()
    result.gone = sorted(path for path in candidates if path not in present)
    if halts:
        result.cliff = _cliff(snapshot, known, result, ours, covered_rows, indexed)
    return result


def _plan_odd(odd: Mapping[str, str], result: Plan) -> int:
    """Sorts what is no plain file; returns how many of them stand in the place of an artifact."""
    ours = 0
    for path, what in odd.items():
        folder, _, name = path.rpartition("/")
        is_ours = what != STRANGE_NAME and folder == MEMORY and artifact_name(name) is not None
        if is_ours:
            ours += 1
            result.read.append(path)
        elif what == STRANGE_NAME or (folder == MEMORY and what == "symlink"):
            message = "a symlink; it is not followed" if what == "symlink" else f"a {what}"
            result.judged.append(Judgement(path, "ignored", "foreign-name", message, None))
        else:
            continue
        result.scanned += 1
    return ours


def _cliff(
    snapshot: Snapshot,
    known: Mapping[str, Known],
    result: Plan,
    ours: int,
    covered: int,
    indexed: int | None,
) -> Cliff | None:
    total = indexed if indexed is not None else sum(1 for k in known.values() if k.verdict == "indexed")
    if total - covered <= 0:
        return None
    if snapshot.ground != "present":
        return Cliff(total, total, snapshot.ground_message)
    dropped = sum(1 for path in result.gone if known[path].verdict == "indexed") - covered
    if snapshot.everything and ours == 0 and dropped > 0:
        return Cliff(total, total, "`memory/` holds none of the files that were indexed")
    if dropped >= CLIFF_MINIMUM and dropped > CLIFF_FRACTION * total:
        return Cliff(dropped, total, f"{dropped} of {total} indexed files are gone")
    return None


def _describe_ignored(code: str) -> str:
    return {
        "conflict-copy": "a copy made by a sync service or a file manager",
        "temporary": "a temporary file of another program",
    }.get(code, "not the name of an artifact")


class JudgeContext(NamedTuple):
    """What `judge` needs besides the file: the rules, the tombstones, and how to get a path's seal.

    `accepted_gone` are paths of sealed files whose absence a person has accepted, `redacted` those of files that were
    redacted. `keeps`: rows and seals will be stored, so judgements must contain them in full.
    """

    tombstones: Tombstones
    noise: NoiseRule
    seal_of: Callable[[str], Seal | None]
    now_iso: str
    accepted_gone: frozenset[str] = frozenset()
    redacted: frozenset[str] = frozenset()
    keeps: bool = True


def judge(path: str, found: Found | Trouble, judging: JudgeContext) -> Judgement:
    """Returns the one verdict of a file under `memory/`, with everything that follows from it."""
    name = artifact_name(path.rpartition("/")[2])
    if name is None:
        return _judge_copy(path, found, judging)
    seal = judging.seal_of(path) if name.kind in IMMUTABLE_KINDS else None
    if isinstance(found, Trouble):
        return _judge_trouble(path, name.token, found, seal, judging)
    try:
        source = open_source(found.raw)
        artifact = read_artifact(name.kind, read(source.head))
        identity = artifact.agent_id, artifact.session_id, artifact.session_key
        if judging.tombstones and judging.tombstones.cover_session(name.token, *identity):
            return _judge_tombstoned(path, found.signature)
        body = _check_body(name, artifact, source.body)
    except (FrontmatterProblem, FieldProblem) as problem:
        if judging.tombstones and judging.tombstones.cover_session(name.token, *_identity(found.raw)):
            return _judge_tombstoned(path, found.signature)
        if seal is not None:
            return _judge_mutated(path, found, seal, judging, str(problem))
        return Judgement(path, "invalid", problem.code, str(problem), found.signature)
    file_sha, actual = sha256(found.raw).hexdigest(), artifact.content_sha256 or ""
    digest = artifact.digest() if name.kind in IMMUTABLE_KINDS else ""
    notes = [Note("bom", "it opens with a byte order mark")] if source.bom else []
    notes += [Note("crlf", "it has CRLF or CR line ends")] if source.crlf else []
    new_seal: Seal | None = None
    redacted = False
    if seal is not None:
        # The same bytes can have another digest only because an older version sealed them, which knew fewer fields.
        changed = _changes(seal, digest, actual) if seal.file_sha256 != file_sha else ""
        sealed = unpack_seal(seal.packed) if changed else None
        # A redaction of what was sealed, made on another machine or here by hand.
        redacted = sealed is not None and redacts(sealed, found.raw)
        if changed and not redacted:
            judgement = _judge_mutated(path, found, seal, judging, changed)
            if path in judging.redacted and sealed is not None and redacts(found.raw, sealed):
                # A version from before its redaction: its hash fits its body, unlike after an edit.
                return judgement._replace(message="an older, unredacted version came back", sealed=sealed)
            return judgement
        if redacted:
            new_seal = seal._replace(digest=digest, text_sha256=actual, file_sha256=file_sha)
        elif seal.digest != digest:
            new_seal = seal._replace(digest=digest)
        elif not seal.packed:  # these bytes are sealed from now on, in whatever form
            new_seal = seal._replace(file_sha256=file_sha)
        elif seal.file_sha256 != file_sha:
            notes.append(Note("reformatted", "the same values in another formatting"))
    elif name.kind in IMMUTABLE_KINDS:
        session_id, now = _name(artifact.session_id), judging.now_iso
        new_seal = Seal(
            path, artifact.agent_id, name.token, session_id, name.kind, digest, actual, file_sha, None, now
        )  # fmt: skip
    row, row_notes = _row(path, name, artifact, body, judging)
    return Judgement(
        path, "indexed", signature=found.signature, notes=(*notes, *_link_notes(artifact, body), *row_notes), row=row,
        seal=new_seal, raw=found.raw if new_seal is not None else None, found_sha256=file_sha, redacted=redacted,
        links=tuple((field_name, _link_target(_link_line(target))) for field_name, target in artifact.targets()),
    )  # fmt: skip


def judge_bytes(path: str, raw: bytes, noise: NoiseRule, now_iso: str = "", seal: Seal | None = None) -> Judgement:
    """Judges bytes whatever was removed: against a seal, or as at first sight."""
    found = Found(raw, Signature(len(raw), 0, 0, 0))
    return judge(path, found, JudgeContext(Tombstones(), noise, lambda _: seal, now_iso))


def judge_missing(path: str, judging: JudgeContext) -> Judgement | None:
    """Judges a missing file: `vanished` if it has a seal and its absence is unexplained, else None.

    A tombstone explains it, or a person who has accepted it.
    """
    name = artifact_name(path.rpartition("/")[2])
    if name is None or name.kind not in IMMUTABLE_KINDS:
        return None
    seal = judging.seal_of(path)
    if seal is None or path in judging.accepted_gone:
        return None
    if judging.tombstones.cover(seal.session_token, seal.agent_id, seal.session_id):
        return None
    return Judgement(path, "violation", "vanished", "the file is gone and no tombstone explains it")


def judge_tombstone(path: str, found: Found | Trouble) -> "tuple[Judgement, Tombstone | None]":
    """Judges a file in `memory/tombstones/`; a broken tombstone still removes by its name."""
    name = path.rpartition("/")[2]
    parts = filename.tombstone_name(name)
    signature = found.signature
    if parts is None:
        code = filename.find_ignored_code(name)
        return Judgement(path, "ignored", code, _describe_ignored(code), signature), None
    if isinstance(found, Trouble):
        return Judgement(path, "invalid", "tombstone-invalid", found.message, signature), None
    try:
        tombstone = Tombstone.read(parse(found.raw).fields)
    except (FrontmatterProblem, FieldProblem) as problem:
        return Judgement(path, "invalid", "tombstone-invalid", str(problem), signature), None
    if tombstone.key != parts:
        message = "its agent_id and session_token are not those of its name"
        return Judgement(path, "invalid", "tombstone-invalid", message, signature), None
    # A row keeps the reason, and the file may have been written by any program.
    tombstone = tombstone.replace(reason=sanitize_line(tombstone.reason) or "none that can be shown")
    return Judgement(path, "tombstone", signature=signature), tombstone


def judge_sealed(seal: Seal, judging: JudgeContext) -> Judgement | None:
    """Returns the judgement of a path's sealed bytes, or None if the bytes are lost."""
    raw = unpack_seal(seal.packed)
    if raw is None:
        return None
    judgement = judge_bytes(seal.path, raw, judging.noise, seal.sealed_at)
    return judgement if judgement.row is not None else None


def _judge_trouble(path: str, token: str, found: Trouble, seal: Seal | None, judging: JudgeContext) -> Judgement:
    """Judges an artifact's path that cannot be read; of a sealed one the index keeps what was sealed."""
    settled = found.code in ("not-a-file", "too-large", "unreadable")
    if settled and judging.tombstones and judging.tombstones.cover(token, None, None):
        return _judge_tombstoned(path, found.signature)
    if found.code == "not-a-file" and seal is not None:
        message = f"something else was put in the place of the sealed file: {found.message}"
        return _add_sealed_row(Judgement(path, "violation", "mutated", message, found.signature), seal, judging)
    code = found.code if settled else "unreadable"
    return _add_sealed_row(Judgement(path, "invalid", code, found.message, found.signature), seal, judging)


def _judge_copy(path: str, found: Found | Trouble, judging: JudgeContext) -> Judgement:
    """Judges a copy or temporary file with a removed session's token: removed with it, unless of another session."""
    token = filename.find_carried_token(path)
    agent_id, session_id, _ = _identity(found.raw) if isinstance(found, Found) else (None, None, None)
    if token is not None and judging.tombstones.cover(token, agent_id, session_id):
        return _judge_tombstoned(path, found.signature)
    code = filename.find_ignored_code(path.rpartition("/")[2])
    return Judgement(path, "ignored", code, _describe_ignored(code), found.signature)


def _identity(raw: bytes) -> tuple[str | None, str | None, str | None]:
    """Returns agent, session id and key of a file as far as they can be read."""
    try:
        fields = parse(raw).fields
    except FrontmatterProblem:
        return None, None, None
    found = (fields.get(name) for name in ("agent_id", "session_id", "session_key"))
    agent_id, session_id, key = (one if isinstance(one, str) and one.strip() else None for one in found)
    return agent_id, session_id, key


def cover_sealed(seal: Seal, tombstones: Tombstones) -> bool:
    """Returns whether the session of a sealed file was removed, by its id or key; only the bytes contain the key."""
    name = artifact_name(seal.path.rpartition("/")[2])
    if name is None:
        return tombstones.cover(seal.session_token, seal.agent_id, seal.session_id)
    if tombstones.cover_session(name.token, seal.agent_id, seal.session_id):
        return True
    if name.token != token_of(seal.agent_id, seal.session_id):  # the token is that of the key, which was checked above
        return False
    raw = unpack_seal(seal.packed)
    return raw is not None and tombstones.cover_session(name.token, *_identity(raw))


def _judge_tombstoned(path: str, signature: Signature | None) -> Judgement:
    return Judgement(
        path,
        "tombstoned",
        "tombstoned",
        "its session was removed; the file came back",
        signature,
        unlink=True,
    )


def _check_body(name: ArtifactName, artifact: Content | Manifest, text: str) -> str:
    """Returns the normalized body of an artifact.

    Raises `FieldProblem` if name, agent, token, links or hash do not fit.
    """
    if artifact.captured_at.text.replace(":", "-") != name.stamp and (
        artifact.captured_at.micros not in parse_name_stamp(name.stamp)
    ):
        raise FieldProblem(
            "captured-at-mismatch", "captured_at", "the field `captured_at` is another instant than the name's"
        )
    if not AGENT_ID.fullmatch(artifact.agent_id):
        raise FieldProblem("agent-invalid", "agent_id", "agent_id may not be used in a path")
    if not token_matches(name.token, artifact.agent_id, artifact.session_key, artifact.session_id):
        raise FieldProblem(
            "token-mismatch", "session_id", "the field `session_id` or the key belongs to another token than the name's"
        )
    for field_name, target in artifact.targets():
        if not _is_plain(target) and paths.leaves_workspace(target):
            raise FieldProblem("path-escape", field_name, f"the field `{field_name}` leaves the workspace")
    body = normalize(text)
    if artifact.content_sha256 is not None and text_sha256(body) != artifact.content_sha256:
        message = "the field `content_sha256` does not match the text"
        raise FieldProblem("hash-mismatch", "content_sha256", message)
    return body


def _judge_mutated(path: str, found: Found, seal: Seal, judging: JudgeContext, what: str) -> Judgement:
    judgement = Judgement(
        path,
        "violation",
        "mutated",
        f"changed after it was sealed: {what}",
        found.signature,
        found_sha256=sha256(found.raw).hexdigest(),
    )
    return _add_sealed_row(judgement, seal, judging)


def _add_sealed_row(judgement: Judgement, seal: Seal | None, judging: JudgeContext) -> Judgement:
    """Adds the row of the sealed content, which stays in the index whatever the file has become."""
    sealed = judge_sealed(seal, judging) if seal is not None else None
    if sealed is None:
        return judgement
    return judgement._replace(row=sealed.row, links=sealed.links)


def _changes(seal: Seal, digest: str, actual: str) -> str:
    if actual != seal.text_sha256:
        return "its text and content_sha256 differ from the sealed version"
    return "fields of its frontmatter differ from the sealed version" if digest != seal.digest else ""


_ARTIFACT_PATH = late(
    r"memory/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z--[a-z2-7]{16}--(?:summary|transcript|compaction|manifest)\.md",
    re.ASCII,
)


@lru_cache(maxsize=2048)
def _is_plain(path: str) -> bool:
    """Returns whether a link field is an artifact's path as we write it, so that no other check is needed."""
    return _ARTIFACT_PATH.fullmatch(path) is not None


def _link_target(path: str) -> str:
    """Returns where a link field points; folds `./` and doubled slashes, takes a bare artifact name as in `memory/`."""
    if _is_plain(path):
        return path
    folded = "/".join(part for part in path.strip().split("/") if part not in ("", "."))
    return f"{MEMORY}/{folded}" if "/" not in folded and artifact_name(folded) is not None else folded


def _link_line(target: str) -> str:
    """Returns a link field as it may be shown; an artifact's path cannot contain a secret."""
    return target if _is_plain(target) else _line(target)


def _link_notes(artifact: Content | Manifest, body: str) -> tuple[Note, ...]:
    notes = [
        Note("link-not-relative", f"`{field_name}` is not written relative to the workspace root")
        for field_name, target in artifact.targets()
        if not _is_plain(target) and _link_target(target) != target
    ]
    if artifact.kind != "transcript" and "[[" in body:
        stray = paths.stray_artifact_links(body)
        if stray:
            shown = _line(stray[0][:120])
            notes.append(Note("link-not-relative", f"a link in the text does not start at the workspace root: {shown}"))
    return tuple(notes)


def _remember(look: Callable[[str], str]) -> Callable[[str], str]:
    """Remembers what short texts look like: the files of a session share their keys, project and sentence."""
    remembered = lru_cache(maxsize=2048)(look)
    return lambda text: remembered(text) if len(text) <= 400 else look(text)


_name, _value, _sanitized = _remember(session_name), _remember(session_value), _remember(sanitize_line)


def _line(text: str) -> str:
    """Returns a one-line value as it may be shown; most are ids of a form that no secret has."""
    return text if UUID.fullmatch(text) else _sanitized(text)


def _row(
    path: str, name: ArtifactName, artifact: Content | Manifest, body: str, judging: JudgeContext
) -> tuple[Row, list[Note]]:
    """Returns the row of a valid file, sanitized, and what is to be said of it.

    The fields that identify the session are exactly those of the frontmatter, because sessions are looked up by them.
    """
    manifest, content, stored = name.kind == "manifest", sanitize_normalized(body), artifact.memory_sentence
    refs = "\n".join(artifact.memory_md_refs)
    manifest_path = artifact.manifest_path if isinstance(artifact, Content) else None
    given = (
        artifact.session_id, artifact.session_key, artifact.project, artifact.harness, manifest_path,
        artifact.source_node_id, stored, *(artifact.repository() or (None, None, None, None)),
    )  # fmt: skip
    looks = (_name, _name, _value, _value, _link_line, _line, _line, *(_value,) * 4)
    clean = [look(value) if value is not None else None for look, value in zip(looks, given, strict=True)]
    session_id, key, project, harness, shown_path, node, sentence, *repository = clean
    assert session_id is not None
    shown_refs = "\n".join(map(_line, artifact.memory_md_refs))
    rules = set[str]()
    for before, after in zip((*given, body, refs), (*clean, content, shown_refs), strict=True):
        if before is not None and after is not None:
            rules.update(redaction_rules(before, after))
    notes: list[Note] = []
    if rules:
        message = f"it seems to hold a secret ({', '.join(sorted(rules))}); the index and pages leave it out"
        notes.append(Note("secret-suspected", message))
    shown = None
    if not manifest:
        day = day_of(artifact.captured_at.micros)
        context = SentenceSubject(content, project, name.kind, day)
        shown = sentence or ""
        if not acceptable(shown, context):
            notes.append(Note("sentence-below-floor", "its memory_sentence says too little; pages show a built one"))
            shown = fallback(context)
    noise = NOTHING if name.kind == "summary" and says_nothing(content) else 0
    if name.kind == "summary" and is_headless(content):
        noise = HEADLESS
    if judging.noise.is_noise(artifact.project, artifact.session_id, artifact.session_key, artifact.harness):
        noise = 1
    began, ended, at = artifact.started_at, artifact.ended_at, artifact.captured_at
    row = Row(
        artifact.agent_id, path, text_sha256(body) if manifest else artifact.content_sha256 or "", name.kind,
        session_id, key, name.token, project, harness,
        at.text, began.text if began else None, ended.text if ended else None,
        shown_path, node, sentence, artifact.memory_sentence_quality, shown, content,
        at.micros, (ended or at).micros, noise,
        shown_refs if manifest else None, artifact.revision if manifest else None, *repository,
    )  # fmt: skip
    return row, notes
