"""Tokens, file names, links and places: what is ours, what is a copy, what would leave the workspace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.formats import paths
from signet_sync.formats.entity_paths import original_of
from signet_sync.formats.filename import (
    IMMUTABLE_KINDS,
    ArtifactName,
    artifact_file_name,
    artifact_name,
    find_carried_token,
    find_ignored_code,
    has_conflict_mark,
    is_copy_mark,
    matches_scan_rule,
    tombstone_file_name,
    tombstone_name,
)
from signet_sync.formats.ids import derive_token, token_matches, token_of
from signet_sync.formats.paths import AGENT_ID, leaves_workspace, stray_artifact_links, targets
from signet_sync.sync.index_records import NoiseRule

KINDS = sorted(IMMUTABLE_KINDS | {"manifest"})
STEM = "2026-03-28T22-34-06.792Z--abcdefghijklmnop--summary"
STONE = "default--abcdefghijklmnop"

# --- tokens ---


@pytest.mark.parametrize(
    ("agent", "key", "session", "by_key", "by_id"),
    [
        ("default", "k1", "s1", "kpvlhe4joud7bnm5", "5osclwfya5swk43g"),
        ("default", None, "s1", "5osclwfya5swk43g", "5osclwfya5swk43g"),
        ("default", "  ", " s1 ", "5osclwfya5swk43g", "5osclwfya5swk43g"),
        ("default", "\tk1\n", "\xa0s1\ufeff", "kpvlhe4joud7bnm5", "5osclwfya5swk43g"),
        ("researcher", "k1", "s1", "k2zyojaym2z2gx35", "scxljdmjecycdmsc"),
        ("Default", None, "x", "lkvqzlwmej6xceki", "lkvqzlwmej6xceki"),
        (" default ", None, "x", "obdgtsfoilyy6qyk", "obdgtsfoilyy6qyk"),
        ("default", "\x85k", "\u200bs\u200b", "v57lzq4n5k5hawb6", "mmglg3wne6nckfon"),
        ("default", "e\u0301", "\xe9", "c5vqfertrtfwia76", "73h2yctmtpocgpke"),
    ],
)  # fmt: skip
def test_tokens_are_written_by_the_key_and_read_by_either(agent, key, session, by_key, by_id):
    assert derive_token(agent, key, session) == by_key
    assert token_of(agent, session) == by_id
    assert token_matches(by_key, agent, key, session)
    assert token_matches(by_id, agent, key, session)
    assert not token_matches(by_key, f"{agent}x", key, session)
    assert not token_matches("a" * 16, agent, key, session)


def test_token_vectors(vectors):
    wrong = [
        case
        for case in vectors["token"]
        for agent, key, session in [(case["agent_id"], case["session_key"], case["session_id"])]
        if derive_token(agent, key, session) != case["token_session_key_rule"]
        or token_of(agent, session) != case["token_session_id_rule"]
        or not token_matches(case["token_session_key_rule"], agent, key, session)
        or not token_matches(case["token_session_id_rule"], agent, key, session)
    ]
    assert wrong == []


# --- names of artifacts and tombstones ---


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_is_stamp_token_and_kind(kind):
    name = artifact_file_name("2026-03-28T22:34:06.792Z", "abcdefghijklmnop", kind)
    assert name == f"2026-03-28T22-34-06.792Z--abcdefghijklmnop--{kind}.md"
    assert artifact_name(name) == ArtifactName("2026-03-28T22-34-06.792Z", "abcdefghijklmnop", kind)


def test_the_last_token_counts():
    name = artifact_name("2026-03-28T1--aaaaaaaaaaaaaaaa--abcdefghijklmnop--summary.md")
    assert name == ArtifactName("2026-03-28T1--aaaaaaaaaaaaaaaa", "abcdefghijklmnop", "summary")


@pytest.mark.parametrize(
    "name",
    [
        "", "MEMORY.md", "MEMORY.backup-2026-03-28T22-34-06.md", "2026-03-28-notes.md",
        "2026-03-28T22-34-06.792Z--abcdefghijklmno1--summary.md",
        "2026-03-28T22-34-06.792Z--abcdefghijklmno--summary.md",
        f"{STEM}.md\n", f"x{STEM}.md",
        "2026-03-28T22-34-06.792Z--abcdefghijklmnop--notes.md",
        "2026-03-28 22-34-06.792Z--abcdefghijklmnop--summary.md", "２０２６-03-28T1--abcdefghijklmnop--summary.md",
        "DREAMS.md", "Zettel--einkaufen.md", ".DS_Store", "desktop.ini",
    ],
)  # fmt: skip
def test_other_names_are_foreign(name):
    assert artifact_name(name) is None
    assert tombstone_name(name) is None
    assert find_ignored_code(name) == "foreign-name"


# What each service makes of `x.md` when two machines wrote it, put behind the stem of a name of ours.
CONFLICT_SUFFIXES = {
    "Dropbox": " (Mira's conflicted copy 2026-01-01).md",
    "Dropbox, German": " (In Konflikt stehende Kopie von Mira 2026-01-01).md",
    "Syncthing": ".sync-conflict-20260101-120000-ABCDEFG.md",
    "Obsidian Sync": " (Conflicted copy laptop 202601011200).md",
    "iCloud and Finder": " 2.md",
    "Google Drive": " (1).md",
    "Nextcloud": " (conflicted copy 2026-01-01 120000).md",
    "ownCloud": "_conflict-20260101-120000.md",
    "Dropbox, Japanese": " (Miraの競合コピー 2026-01-01).md",
    "OneDrive": "-DESKTOP-4F2K9QL.md",
    "OneDrive, Mac": "-Miras-MacBook-Pro.md",
    "Resilio": ".Conflict.md",
}


@pytest.mark.parametrize("suffix", CONFLICT_SUFFIXES.values(), ids=CONFLICT_SUFFIXES)
@pytest.mark.parametrize("stem", [STEM, STONE], ids=["artifact", "tombstone"])
def test_copies_of_sync_services_are_told_from_ours_and_still_carry_the_token(stem, suffix):
    name = f"{stem}{suffix}"
    assert artifact_name(name) is None
    assert tombstone_name(name) is None
    assert find_ignored_code(name) == "conflict-copy"
    assert find_carried_token(name) == "abcdefghijklmnop"
    assert is_copy_mark(suffix.removesuffix(".md"))
    assert original_of(f"MEMORY{suffix}") == "MEMORY.md" and original_of(f"ledger/2026/03/28{suffix}")


@pytest.mark.parametrize("name", ["MEMORY-ideas.md", "MEMORY_old.md", "MEMORY-2.md", "MEMORY-Nova.md", "2026-03-28.md"])
def test_what_a_person_named_after_a_page_is_no_copy(name):
    assert original_of(name) is None


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-03-28T22-34-06.792Z (1)",
        "2026-03-28T22-34-06.792Z 2",
        "2026-03-28T22-34-06.792Z (Conflicted copy laptop 202601011200)",
        "2026-03-28T22-34-06.792Z.sync-conflict-20260101-120000-ABCDEFG",
    ],
)
def test_a_mark_within_the_stamp_beats_the_scan_rule(stamp):
    name = f"{stamp}--abcdefghijklmnop--summary.md"
    assert matches_scan_rule(name)
    assert artifact_name(name) is None
    assert find_ignored_code(name) == "conflict-copy"
    assert has_conflict_mark(stamp)


@pytest.mark.parametrize(
    "name",
    [
        f"{STEM}.md.tmp", f"{STEM}.md.tmp-1-2", f".{STEM}.md.swp", f".{STEM}.md.swx", f"{STEM}.md~", f"~${STEM}.md",
        f".#{STEM}.md", f"#{STEM}.md#", "4913", ".goutputstream-AB12CD", f"{STEM}.md___jb_tmp___",
        f"{STEM}.md___jb_old___", f".syncthing.{STEM}.md.tmp", f".syncthing.{STEM} (1).md.tmp",
        f"~syncthing~{STEM}.md.tmp", f".unison.{STEM}.md.0a1b2c.unison.tmp", ".mutagen-temporary-staging-1",
        ".dropbox.cache", f".{STEM}.md.AbC123", f".~lock.{STEM}.md#", f"._{STEM}.md", f"{STEM}.md.part",
        f"{STEM}.md.partial", f"{STEM}.md.crdownload", ".signet-1234-5678", f"{STEM}.md.sb-1a2b3c4d-XyZabc",
        f".~{STEM}.md", f".{STEM}.md.~1a2b3c", f"{STEM}.md.download", f"{STEM}.md.dropbox-download",
    ],
)  # fmt: skip
def test_temporary_names_of_editors_and_sync_programs(name):
    assert artifact_name(name) is None
    assert find_ignored_code(name) == "temporary"


def test_a_tombstone_has_one_name():
    assert tombstone_file_name("ops-bot", "abcdefghijklmnop") == "ops-bot--abcdefghijklmnop.md"
    assert tombstone_name("ops-bot--abcdefghijklmnop.md") == ("ops-bot", "abcdefghijklmnop")
    assert find_ignored_code("ops-bot--abcdefghijklmnop.md") == "foreign-name", "lying among the artifacts"
    assert tombstone_name("a--b--abcdefghijklmnop.md") == ("a--b", "abcdefghijklmnop")
    assert tombstone_name("Ops--abcdefghijklmnop.md") is None
    assert tombstone_name("ops-bot--abcdefghijklmnop.md\n") is None


@pytest.mark.parametrize(
    "agent", ["", "Default", "-a", "_a", "a/b", "..", ".", "a b", "a" * 65, "é", "a\n", "a\0", "١"]
)
def test_names_that_no_agent_may_have(agent):
    assert AGENT_ID.fullmatch("a_b-0") and not AGENT_ID.fullmatch(agent)


def test_name_vectors(vectors):
    built = [
        case["file_name"]
        for case in vectors["filename"]
        if artifact_file_name(case["captured_at"], case["token"], case["kind"]) != case["file_name"]
        or matches_scan_rule(case["file_name"]) != case["matches_scan_regex"]
    ]
    scanned = [case["name"] for case in vectors["scan_regex"] if matches_scan_rule(case["name"]) != case["scanned"]]
    assert (built, scanned) == ([], [])


# --- noise ---


def test_noise_vectors(vectors):
    """Folders for temporary files that Signet does not know are noise, too; all else is as it has it."""
    more = {"/tmp", "/private/tmp", "/var/tmp/x", "/var/folders/ab/T/x"}
    wrong = [
        case
        for case in vectors["noise"]
        if NoiseRule().is_noise(case["project"], case["sessionId"], case["sessionKey"], case["harness"])
        != (case["noise"] or case["project"] in more)
    ]
    assert wrong == [] and more < {case["project"] for case in vectors["noise"]}


# --- links ---


def test_targets_leave_heading_block_and_label_out():
    text = "[[a]] ![[b|c]] [[ d e #f]] [[g#^h|i]] [[]] [[|x]] [j] [[k\nl]] [[m]n]] [[[o]]] [[p|]]"
    assert targets(text) == ["a", "b", "d e", "g", "o", "p"]
    assert targets("no links") == []


def test_stray_links_name_an_artifact_without_its_folder():
    text = f"[[{STEM}]] [[memory/{STEM}.md|x]] [[../{STEM}.md]] [[./memory/{STEM}.md]] [[other note]]"
    assert stray_artifact_links(text) == [STEM, f"../{STEM}.md", f"./memory/{STEM}.md"]


CLIMBING = [
    f"{before}{up}{after}"
    for up in ("..", "%2e%2e", "%2E.", ".%2e", "%2E%2E")
    for before in ("", "memory/", "memory/x/", "./", "memory\\", "memory%2f", "memory%5C", "memory//")
    for after in ("/x", "\\x", "")
]
ABSOLUTE = [
    *("/", "/etc/passwd", "//host/share", "\\\\host\\share\\x.md", "\\x", "\\", "%2fetc/passwd", "%5c%5chost", "/ "),
    *("~", "~/x", "~root/.ssh/id", "%7e/x", "  /etc/passwd", "\t~/x", "\n/etc", "\u3000/etc"),
    *("C:\\x", "c:x", "C:/x", "%43:/x", "c%3a/x", "z:"),
    *("file://x", "file:///etc/passwd", "FILE:/x", "%66ile:///x", "http://x/y", "https://x", "data:text/plain,x"),
    *("obsidian://open?path=x", "javascript:alert(1)", "mailto:a@b", "smb+x.y-z://h"),
]
BROKEN = ["memory/\0x", "\0", "memory/%00x", "a/" * 5000 + "..", "/" + "x" * 10_000]
HOSTILE = CLIMBING + ABSOLUTE + BROKEN


def test_links_that_leave_the_workspace():
    assert len(set(HOSTILE)) > 130
    assert [path for path in HOSTILE if not leaves_workspace(path)] == []


@pytest.mark.parametrize(
    "path",
    [
        f"memory/{STEM}.md", f"{STEM}.md", f"./memory/{STEM}.md", "memory/claude-code/transcripts/transcript.jsonl",
        "memory/2026-03-28T22:34:06.792Z--abcdefghijklmnop--summary.md", "memory/a..b.md", "memory/...md",
        "memory/.../x", "memory/x~", "memory/~x", "memory/100%.md", "memory/%zz.md", "memory/a%20b.md",
        "memory/セッション.md", "memory/a b (1).md", "x" * 10_000, "a/" * 5_000, "", "   ",
    ],
)  # fmt: skip
def test_honest_links_do_not(path):
    assert not leaves_workspace(path)


@given(st.text(alphabet="./\\%2eE5cCfF~:a \0", max_size=12))
def test_what_stays_inside_resolves_inside(path):
    if not leaves_workspace(path):
        depth = 0
        for part in path.strip().replace("\\", "/").split("/"):
            depth += {"": 0, ".": 0, "..": -1}.get(part, 1)
            assert depth >= 0
        assert not path.strip().startswith("/")


# --- places ---


@pytest.mark.parametrize(
    ("path", "agent"),
    [
        ("MEMORY.md", "default"), ("ledger/2026-03.md", "default"), ("ledger/2026/03/28.md", "default"),
        ("agents/ops-bot/MEMORY.md", "ops-bot"), ("agents/ops-bot/ledger/2026-03.md", "ops-bot"),
        ("agents/ops-bot/ledger/2026/03/28.md", "ops-bot"), ("memory/MEMORY.md", None),
        ("agents/Ops/MEMORY.md", None), ("agents/../MEMORY.md", None), ("ledger/2026/03/28.md\n", None),
        ("ledger/2026/3/28.md", None), ("MEMORY.user-20260328T223406Z.md", None),
    ],
)  # fmt: skip
def test_pages_name_their_agent(path, agent):
    assert paths.page_agent(path) == agent


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("MEMORY.signet-20260328T223406Z.md", True), ("MEMORY.user-20260328T223406792Z.md", True),
        ("agents/ops-bot/ledger/2026-03.user-20260328T223406Z-2.md", True),
        ("MEMORY.backup-2026-03-28T22-34-06.md", False), ("MEMORY.user-2026.md", False),
        (".user-20260328T223406Z.md", False),
    ],
)  # fmt: skip
def test_kept_copies_are_known_by_their_name(path, kept):
    assert (paths.KEPT_COPY.fullmatch(path) is not None) is kept


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("memory/é 会話.md", "memory/é 会話.md"), ("memory/\udcff\udcfe.md", "memory/\\xff\\xfe.md"),
        ("a\nb\x1b[0m\x7f\u202e\u2028", "a\\nb\\x1b[0m\\x7f\\u202e\\u2028"), ("\ud800", "\\ud800"),
    ],
)  # fmt: skip
def test_paths_are_shown_without_control_characters(path, shown):
    assert paths.display(path) == shown
