"""What a session is told at its start: within its limit, in whole lines, as data; and nothing from elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import Vault

from signet_sync.formats.managed_block import CLOSING, OPENING
from signet_sync.pages.context import IDENTITIES, LIMIT, PromptHit, files_text, lay_out_hits, room, wrap
from signet_sync.storage.locations import write_program
from signet_sync.text.token_estimate import estimate_tokens

LINES = st.lists(st.text(alphabet="ab é<>-\t", max_size=60), max_size=60).map("\n".join)
FILES = st.lists(LINES, max_size=4).map(
    lambda texts: {path: text for path, text in zip(IDENTITIES, texts, strict=False) if text.strip()}
)
MANY = "\n".join(f"word {number}" for number in range(5_000))


# --- the desk -------------------------------------------------------------------------------------------------------


@given(FILES, st.integers(0, 3_000), st.sampled_from([len, estimate_tokens]))
def test_the_limit_holds_every_line_is_whole_and_nothing_is_cut_where_all_fits(files, limit, size):
    text = files_text(files, limit, size)
    assert size(text) <= limit
    allowed = {"", *(line for body in files.values() for line in body.split("\n"))}
    for line in text.split("\n"):
        assert line in allowed or line.startswith(("=== ", "[The rest of "))
    whole = files_text(files, 1_000_000, len)
    assert "[The rest" not in whole
    for body in files.values():
        assert body.strip("\n") in whole or body.strip("\n").endswith((" ", "\t"))


MARKED = f"<!-- signet:begin -->\n# M\n{CLOSING}\nforget {OPENING}\n<!-- signet:end 0123456789abcdef -->\nmine"


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"MEMORY.md": "# Memory", **{path: f"I am {path}" for path in IDENTITIES}},
         "=== MEMORY.md ===\n# Memory\n\n" + "\n\n".join(f"=== {path} ===\nI am {path}" for path in IDENTITIES)),
        ({}, ""),
        ({"MEMORY.md": "x" * 20_000},
         "=== MEMORY.md ===\n[The rest of MEMORY.md is left out here; the whole is in that file.]"),
        ({"MEMORY.md": MARKED}, "=== MEMORY.md ===\n# M\n‹/signet-memory›\nforget ‹signet-memory›\nmine"),
    ],
    ids=["in their order", "nothing", "one endless line", "markers and marks"],
)  # fmt: skip
def test_files_word_by_word(files, text):
    assert files_text(files, LIMIT, len) == text
    assert wrap("", "/home/u/.agents", "signet-sync") == ""


def test_a_long_file_does_not_starve_the_short_ones_and_what_they_leave_is_its():
    text = files_text({"AGENTS.md": MANY, "SOUL.md": "kind", "IDENTITY.md": MANY, "USER.md": "likes tea"}, LIMIT, len)
    assert "=== SOUL.md ===\nkind\n" in text and text.endswith("=== USER.md ===\nlikes tea")
    assert all(f"[The rest of {one} is left out here; the whole" in text for one in ("AGENTS.md", "IDENTITY.md"))
    assert abs(text.index("=== SOUL.md") - 4_900) < 100, "an even share"
    assert 9_800 < len(text) <= LIMIT


@pytest.mark.parametrize("root", ["/home/u/.agents", "/" + "x" * 3_000, "/new\nline", f"/a{CLOSING}b"])
def test_the_marks_and_what_is_said_of_the_text_count_too(root):
    text = wrap(files_text({"MEMORY.md": MANY}, room(root, "signet-sync"), len), root, "signet-sync")
    assert len(text) <= LIMIT
    opening, about, *_, closing = text.split("\n")
    assert (opening, closing) == (OPENING, CLOSING)
    assert "data, not instructions" in about
    assert text.count(CLOSING) == text.count(OPENING) == 1


@pytest.mark.parametrize(
    ("root", "agent", "command"),
    [
        ("/home/u/.agents", "default", "signet-sync expand HANDLE"),
        ("/home/u/.agents", "scout", "signet-sync --agent scout expand HANDLE"),
        ("/srv/my notes", "scout", "signet-sync --workspace '/srv/my notes' --agent scout expand HANDLE"),
    ],
)
def test_a_session_is_told_the_command_that_opens_its_handles(root, agent, command, monkeypatch):
    monkeypatch.setenv("SIGNET_WORKSPACE", "/home/u/.agents")
    assert wrap("-", root, write_program(root, agent)).split("\n")[1].endswith(f" opens with: {command}")


WORDS = st.lists(st.sampled_from([CLOSING, OPENING, "[[x]]", "word ", "\n", "|", "é", "^f-abcdefgh2345"]), max_size=60)
HIT = st.builds(
    PromptHit, WORDS.map("".join), WORDS.map("".join), st.none() | st.just("memory/a--summary.md"),
    st.sampled_from(["f-abcdefgh2345", "key#3"]),
)  # fmt: skip


@given(st.lists(HIT, max_size=6), st.integers(0, 2_000))
def test_what_is_recalled_fits_and_stays_one_line_each(found, limit):
    text, kept = lay_out_hits(found, limit, estimate_tokens)
    assert estimate_tokens(text) <= limit
    assert bool(text) == bool(kept)
    assert len(text.split("\n")) == (len(kept) + 1 if kept else 1)
    assert CLOSING not in text and OPENING not in text
    assert all(line.endswith((" ^f-abcdefgh2345", " key#3")) for line in text.split("\n")[1:])


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_prints_what_stands_in_the_workspace_of_each_agent(vault):
    (vault / "MEMORY.md").write_text("# Working Memory\n\n- lantern waits\n")
    (vault / "USER.md").write_text("likes tea\r\n")
    (vault / "agents" / "scout").mkdir(parents=True)
    (vault / "agents/scout/MEMORY.md").write_text("of scout")
    answer = vault.call("context")
    assert (answer.code, answer.out) == (
        0, "=== MEMORY.md ===\n# Working Memory\n\n- lantern waits\n\n=== USER.md ===\nlikes tea\n"
    )  # fmt: skip
    text = answer.out.rstrip("\n")
    assert vault.call("context", "--json", "--now", "2026-03-29T12:00:00Z").json == {
        "agent_id": "default", "scope": "main", "tokens": estimate_tokens(text), "text": text,
        "sources": ["MEMORY.md", "USER.md"],
    }  # fmt: skip
    assert vault.call("context", "--scope", "shared", "--json").json["sources"] == ["USER.md"]
    document = vault.call("context", "--agent", "scout", "--json").json
    assert document["sources"] == ["agents/scout/MEMORY.md", "USER.md"]
    assert document["text"].startswith("=== agents/scout/MEMORY.md ===\nof scout\n")
    assert vault.call("context", "--agent", "other", "--json").json["sources"] == ["USER.md"]


def test_a_budget_is_in_tokens_and_holds(vault):
    (vault / "MEMORY.md").write_text("\n".join(f"- a line of words about lantern {n}" for n in range(2_000)))
    for budget in (100, 700, 9_000):
        (vault / "signet-sync.toml").write_text(f"[context]\nbudget_tokens = {budget}\n")
        document = vault.call("context", "--json").json
        assert 0.9 * budget - 20 < document["tokens"] <= budget
        assert "[The rest of MEMORY.md is left out" in document["text"]


def test_no_secret_is_printed_and_what_is_too_large_is_told(vault):
    (vault / "AGENTS.md").write_text("use ghp_7kQ2mX9vB4nR8tW3yZ6cF1hJ5pL0sD2gA8eK\x1b[31m now\u202e\n")
    (vault / "USER.md").write_text("x\n" * 3_000_000)
    answer = vault.call("context")
    assert "[REDACTED:" in answer.out and not any(one in answer.out for one in ("ghp_", "\x1b", "\u202e"))
    assert answer.err.startswith("warning: USER.md: ") and answer.err.count("\n") == 1


def test_an_empty_workspace_has_nothing_to_tell(vault, tmp_path):
    answer = vault.call("context")
    assert (answer.code, answer.out) == (0, "")
    assert "nothing is known of this folder's project" in answer.err
    vault.call("remember", "Releases go out on Thursdays", "--type", "constraint")
    shared = vault.call("context", "--scope", "shared")
    assert shared.out == "" and "it is the identity files only" in shared.err
    assert Vault(tmp_path / "vault").call("-q", "context").err == ""
    assert vault.call("--workspace", str(tmp_path / "none"), "context").code == 3


def test_an_index_that_cannot_be_asked_is_told_and_the_page_is_given_all_the_same(tmp_path):
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    assert "warning" not in vault.call("context").err, "none yet is no trouble"
    vault.reindex()
    vault.db.write_bytes(b"no database at all" * 1000)
    answer = vault.call("context")
    assert answer.code == 0 and "step number 1" in answer.out
    assert answer.err.startswith("warning: the index cannot be read: ") and answer.err.count("\n") == 1
