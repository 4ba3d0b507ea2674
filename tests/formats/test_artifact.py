"""The models: every field in every state of wrongness, and heads that Obsidian saved again."""

import pytest

from signet_sync.formats.artifact import (
    MANIFEST_FIELDS,
    MANIFEST_KEYS,
    REPOSITORY_FIELDS,
    FieldProblem,
    Instant,
    Manifest,
    Tombstone,
    Transcript,
    read_artifact,
    validate,
)
from signet_sync.formats.frontmatter import parse, read, read_written, serialize, write

AT = "2026-03-28T22:34:06.792Z"
LATER = "2026-03-28T23:34:06.792Z"
SECRET = "hunter2-hunter2"
LINK = "memory/2026-03-28T22-34-06.792Z--abcdefghijklmnop--{}.md"
WHO = {
    "agent_id": "default", "session_id": "0195d7a2-6f00-7cc0-8a44-1d2e3f405162", "session_key": "agent:main:main",
    "project": "/home/ada/code/lantern", "harness": "claude-code", "captured_at": AT, "started_at": AT,
    "ended_at": LATER,
}  # fmt: skip
CONTENT = {
    "kind": "summary",
    **WHO,
    "manifest_path": LINK.format("manifest"),
    "source_node_id": "node-7",
    "content_sha256": "ab" * 32,
    "hash_scope": "body-normalized-v1",
    "memory_sentence": "In lantern the retry loop was bounded so that a dead broker no longer blocks any start.",
    "memory_sentence_version": "memory_sentence_v1",
    "memory_sentence_quality": "ok",
    "memory_sentence_generated_at": LATER,
}
MANIFEST = {
    "kind": "manifest",
    **WHO,
    "summary_path": LINK.format("summary"),
    "transcript_path": LINK.format("transcript"),
    "compaction_path": LINK.format("compaction"),
    "memory_md_refs": ["Session Ledger (Last 30 Days)"],
    "updated_at": LATER,
    "revision": "3",
}
TOMBSTONE = {
    "kind": "tombstone", "agent_id": "default", "session_token": "abcdefghijklmnop", "removed_at": AT,
    "reason": "asked for",
    "removed_paths": [LINK.format("summary")],
    "tombstone_version": "1",
    "session_ids": ["s1"],
}  # fmt: skip
WHOLE = {
    "summary": CONTENT,
    "compaction": {**CONTENT, "kind": "compaction"},
    "transcript": {
        **CONTENT,
        "kind": "transcript",
        "sanitizer_version": "sanitize_transcript_v1",
        "sanitizer_rules": "v2",
    },
    "manifest": MANIFEST,
    "tombstone": TOMBSTONE,
}

IDENTITY = ["kind", "agent_id", "session_id", "captured_at"]
NULLABLE = ["session_key", "project", "harness", "started_at", "ended_at"]
CONTENT_REQUIRED = [
    *IDENTITY,
    *["manifest_path", "content_sha256", "hash_scope", "memory_sentence", "memory_sentence_version"],
    *["memory_sentence_quality", "memory_sentence_generated_at"],
]
REQUIRED = {
    "summary": CONTENT_REQUIRED,
    "compaction": CONTENT_REQUIRED,
    "transcript": [*CONTENT_REQUIRED, "sanitizer_version"],
    "manifest": [*IDENTITY, "updated_at"],
    "tombstone": ["kind", "agent_id", "session_token", "removed_at", "reason"],
}
OPTIONAL = {
    "summary": [*NULLABLE, "source_node_id"],
    "compaction": [*NULLABLE, "source_node_id"],
    "transcript": [*NULLABLE, "source_node_id", "sanitizer_rules"],
    "manifest": [*NULLABLE, "summary_path", "transcript_path", "compaction_path"],
}
LISTS = {"manifest": ["memory_md_refs"], "tombstone": ["removed_paths", "session_ids"]}
COUNTS = {"manifest": {"revision": 0}, "tombstone": {"tombstone_version": 1}}


def typed(kind, fields):
    return Tombstone.read(fields) if kind == "tombstone" else validate(kind, fields)


def refusal(kind, /, **wrong):
    fields = {key: value for key, value in {**WHOLE[kind], **wrong}.items() if value is not ...}
    with pytest.raises(FieldProblem) as caught:
        typed(kind, fields)
    assert caught.value.field in str(caught.value)
    return caught.value.code, caught.value.field, str(caught.value)


def each(table):
    return [pytest.param(kind, field, id=f"{kind}-{field}") for kind in table for field in table[kind]]


@pytest.mark.parametrize("kind", WHOLE)
def test_every_field_of_the_seed_is_in_one_of_these_tables(kind):
    told = {*REQUIRED[kind], *OPTIONAL.get(kind, ()), *LISTS.get(kind, ()), *COUNTS.get(kind, ())}
    assert told == set(WHOLE[kind])
    assert told == set(type(typed(kind, WHOLE[kind])).FIELDS) - set(REPOSITORY_FIELDS)


@pytest.mark.parametrize(("kind", "field"), each(REQUIRED))
def test_required_fields_are_missing_when_absent_or_null_and_invalid_when_blank(kind, field):
    for value in (..., None):
        code, named, _ = refusal(kind, **{field: value})
        assert (code, named) == ("field-missing", field)
    for value in ("", " \t\xa0\ufeff", [], [SECRET], {"a": SECRET}):
        code, named, message = refusal(kind, **{field: value})
        assert (code, named) == ("field-invalid", field) and SECRET not in message


@pytest.mark.parametrize(("kind", "field"), each(OPTIONAL))
def test_nullable_fields_are_none_when_absent_null_or_blank(kind, field):
    for value in (..., None, "", " \t\xa0\ufeff"):
        fields = {key: given for key, given in {**WHOLE[kind], field: value}.items() if given is not ...}
        artifact = typed(kind, fields)
        assert getattr(artifact, field) is None
        assert artifact.digest() == typed(kind, {**WHOLE[kind], field: None}).digest()
        assert artifact.digest() != typed(kind, WHOLE[kind]).digest()


INSTANTS = ["captured_at", "started_at", "ended_at", "memory_sentence_generated_at", "updated_at", "removed_at"]
PARTICULAR = [
    *((kind, field) for kind in WHOLE for field in INSTANTS if field in WHOLE[kind]),
    *((kind, field) for kind in ("summary", "transcript", "compaction") for field in ("content_sha256", "hash_scope")),
    *((kind, "memory_sentence_quality") for kind in ("summary", "transcript", "compaction")),
    *(("manifest", field) for field in ("revision",)),
    *(("tombstone", field) for field in ("kind", "session_token", "tombstone_version")),
]


@pytest.mark.parametrize(("kind", "field"), PARTICULAR)
def test_fields_of_a_particular_form_refuse_any_other_text_without_repeating_it(kind, field):
    for value in (SECRET, "2026-13-45", "9" * 5_000, "-1", "1.5", "\x00", "\u0661", "ok ", "nan"):
        code, named, message = refusal(kind, **{field: value})
        assert (code, named) == ("field-invalid", field)
        assert len(message) < 100
        assert value not in message


@pytest.mark.parametrize(("kind", "field"), each(LISTS))
def test_lists_may_be_absent_null_empty_or_one_text(kind, field):
    for value in (None, [], "", "  "):
        assert getattr(typed(kind, {**WHOLE[kind], field: value}), field) == ()
    absent = {key: value for key, value in WHOLE[kind].items() if key != field}
    assert getattr(typed(kind, absent), field) == ()
    x, y = (LINK.format("summary"), LINK.format("transcript")) if field == "removed_paths" else ("x", "y")
    assert getattr(typed(kind, {**WHOLE[kind], field: x}), field) == (x,)
    assert getattr(typed(kind, {**WHOLE[kind], field: [x, y]}), field) == (x, y)
    for value in ({"a": SECRET}, [None], [[SECRET]], [{"a": SECRET}]):
        code, named, message = refusal(kind, **{field: value})
        assert (code, named) == ("field-invalid", field)
        assert SECRET not in message


@pytest.mark.parametrize("path", ["../victim", "memory/../victim", "/etc/passwd", "memory/notes.md", "MEMORY.md", "x"])
def test_a_tombstone_keeps_paths_of_artifacts_alone(path):
    artifact = LINK.format("summary")
    assert typed("tombstone", {**TOMBSTONE, "removed_paths": [path, artifact]}).removed_paths == (artifact,)


@pytest.mark.parametrize(
    ("kind", "field", "default"), [(kind, field, value) for kind in COUNTS for field, value in COUNTS[kind].items()]
)
def test_counts_are_whole_numbers(kind, field, default):
    absent = {key: value for key, value in WHOLE[kind].items() if key != field}
    assert getattr(typed(kind, absent), field) == default
    assert getattr(typed(kind, {**WHOLE[kind], field: "012"}), field) == 12
    assert getattr(typed(kind, {**WHOLE[kind], field: 12}), field) == 12
    for value in ("", " ", "x", "1_0", "1e3", True, 1.5, -1, ["1"], {"1": "1"}, "²", "9" * 16):
        assert refusal(kind, **{field: value})[:2] == ("field-invalid", field)


def test_unknown_fields_are_ignored_whatever_they_hold():
    strange = {"aliases": ["x"], "tags": {"a": None}, "": "y", "model_config": "z", "__dict__": "q", "digest": "d"}
    assert typed("summary", {**CONTENT, **strange}).digest() == typed("summary", CONTENT).digest()
    assert {"content_sha256", "hash_scope"} <= MANIFEST_KEYS
    assert tuple(Manifest.FIELDS) == (*MANIFEST_FIELDS, *REPOSITORY_FIELDS)


def test_values_are_typed_and_written_as_they_were():
    artifact = typed("transcript", {**WHOLE["transcript"], "captured_at": f" {AT} ", "content_sha256": "AB" * 32})
    assert artifact.captured_at == Instant(AT, 1_774_737_246_792_000)
    assert artifact.fields() == WHOLE["transcript"]
    assert isinstance(artifact, Transcript)
    assert Transcript.links == ("manifest_path",)
    manifest = typed("manifest", MANIFEST)
    assert manifest.fields() == {**MANIFEST, "revision": 3}
    assert Manifest.links == ("summary_path", "transcript_path", "compaction_path")


def test_the_digest_is_of_typed_values():
    digest = typed("summary", CONTENT).digest()
    same = {"captured_at": "2026-03-29 00:34:06,792 +02:00", "content_sha256": "AB" * 32, "ended_at": f"{LATER} "}
    assert typed("summary", {**CONTENT, **same}).digest() == digest
    for field in CONTENT:
        other = {"captured_at": LATER, "memory_sentence_quality": "fallback", "content_sha256": "cd" * 32}
        if field != "hash_scope":
            value = other.get(field, AT if CONTENT[field] == LATER else LATER if CONTENT[field] == AT else "other")
            assert typed("summary", {**CONTENT, field: value}).digest() != digest, field


def test_a_tombstone_covers_its_agent_and_its_sessions_only():
    some, all_of_them = typed("tombstone", TOMBSTONE), typed("tombstone", {**TOMBSTONE, "session_ids": None})
    assert some.covers("default", "s1") and not some.covers("default", "s2") and not some.covers("ops-bot", "s1")
    assert some.covers(None, None) and some.covers("default", None) and some.covers(None, "s1")
    assert all_of_them.covers("default", "s2") and not all_of_them.covers("ops-bot", "s2")


# --- through the files ---


@pytest.mark.parametrize("kind", WHOLE)
def test_written_files_give_the_same_artifact(kind):
    artifact = typed(kind, WHOLE[kind])
    document = parse(write(artifact.fields(), "body"))
    assert typed(kind, document.fields) == artifact
    assert read_written(document.head) is not None


# --- fields that only some files have ---

OURS = {"revision": 3, "content_sha256": "ab" * 32, "hash_scope": "body-normalized-v1"}
AS_WRITTEN = {kind: {**WHOLE[kind], **(OURS if kind == "manifest" else {})} for kind in WHOLE if kind != "tombstone"}


def in_repository(kind, **more):
    """The fields of a file as we write them, with those of a repository in their place."""
    fields = dict(AS_WRITTEN[kind])
    last = {name: fields.pop(name) for name in ("sanitizer_version", "sanitizer_rules") if name in fields}
    return {**fields, **REPOSITORY, **more, **last}


REPOSITORY = {
    "repository_root": "/code/lantern", "repository_origin": "example.org/ada/lantern", "repository_path": "docs",
    "repository_branch": "wick",
}  # fmt: skip


@pytest.mark.parametrize("kind", AS_WRITTEN)
def test_a_repository_is_read_and_sealed_only_where_there_is_one(kind):
    plain, named = typed(kind, AS_WRITTEN[kind]), typed(kind, in_repository(kind))
    assert plain.repository() is None and not plain.fields().keys() & set(REPOSITORY)
    assert typed(kind, in_repository(kind, **dict.fromkeys(REPOSITORY))).digest() == plain.digest()
    assert named.repository() == tuple(REPOSITORY.values())
    assert [*named.fields()] == [*in_repository(kind)] if kind != "manifest" else True
    for field in REPOSITORY:
        assert typed(kind, in_repository(kind, **{field: "/other"})).digest() != named.digest() != plain.digest()
    for more in ({}, {"repository_origin": None}, {"repository_path": ""}):
        found = read_artifact(kind, read(serialize(in_repository(kind, **more))[4:-4]))
        assert found == typed(kind, in_repository(kind, **more))
    assert typed(kind, in_repository(kind, repository_path="")).fields()["repository_path"] == ""


def test_the_kind_of_the_name_must_be_that_of_the_head():
    with pytest.raises(FieldProblem) as caught:
        read_artifact("summary", read(serialize(WHOLE["transcript"])[4:-4]))
    assert (caught.value.code, caught.value.field) == ("kind-mismatch", "kind")
