"""MEMORY.md and the ledger pages as text: word by word, which rows and sections, within the budget."""

from __future__ import annotations

import re

import pytest
from artifacts_fixture import ABSENT, compaction, fill, judged, manifest, path_for, summary, token_for, transcript

from signet_sync.formats.timestamps import DAY, iso, parse_instant
from signet_sync.pages.memory_page import Rendered, render
from signet_sync.pages.sections import BoardInputs, NodeView, StatementView
from signet_sync.pages.session_log import day_text, make_clipping_notice, month_text
from signet_sync.pages.stage import projection
from signet_sync.storage.database.connection import Database
from signet_sync.text.token_estimate import estimate_tokens

NOW = "2026-03-30T12:00:00.000Z"
NOW_US = parse_instant(NOW)
LINK = re.compile(r"\[\[(.*?)\]\]")


def page(files, *, now_us=NOW_US, budget=5000, agent_id="default", warning="", head=(), nodes=()) -> Rendered:
    """The page of an agent whose vault holds these files, by way of the desk and the index; the graph is given."""
    database = Database(":memory:")
    fill(database, judged(files))
    found = projection(database, agent_id, now_us, budget, 30, warning)
    given = found._replace(
        inputs=lambda _: BoardInputs(statements=head), nodes=lambda condensed, before_us: () if condensed else nodes
    )
    rendered = render(given, budget)
    database.close()
    return rendered


def statements(*kinds_and_texts) -> list[StatementView]:
    """Statements as the head may show them, the first ranking first."""
    return [
        StatementView(f"f-{number:012d}", kind, text, "/code/lantern", NOW_US - number * DAY, path_for("summary"))
        for number, (kind, text) in enumerate(kinds_and_texts)
    ]


def compactions(count) -> list[NodeView]:
    """So many nodes of the index."""
    moments = [NOW_US - (n + 40) * DAY for n in range(count)]
    return [
        NodeView(f"c-{n:012d}", "lantern", at, at, f"Session {n} of lantern.", path_of(n))
        for n, at in enumerate(moments)
    ]


def path_of(number):
    return path_for("compaction", session_id=f"c-{number}")


def rows(rendered):
    return [line for line in rendered.text.split("\n") if re.match(r"- \d{4}-\d\d-\d\dT", line)]


def names(rendered):
    return [re.search(r"session=(\S+)", row)[1] for row in rows(rendered)]


# ── pages word by word ──


def golden_files():
    one = {"session_id": "s-1", "session_key": "agent:main:main", "captured_at": "2026-03-28T10:00:00.000Z"}
    two = {"session_id": "s-2", "captured_at": "2026-03-27T23:30:00.000Z", "project": None}
    ends = {"ended_at": "2026-03-28T10:05:00.250Z", **one}
    storm = "The storm lamp of lantern-core was rebuilt so that it burns through a whole winter night."
    return dict(
        [
            manifest(**ends),
            summary(**ends | {"ended_at": "2026-03-28T11:05:00.250+01:00"}),
            transcript(**ends),
            compaction(memory_sentence=storm, ended_at=None, body="# lantern-core\n", **two),
        ]
    )


def test_a_small_page_word_by_word():
    key, two = token_for(session_key="agent:main:main"), token_for(session_id="s-2")
    rendered, first, second = page(golden_files()), *rows(page(golden_files()))
    start = f"memory/2026-03-28T10-00-00.000Z--{key}--"
    links = " ".join(f"[[{start}{kind}.md|{kind}]]" for kind in ("summary", "transcript", "manifest"))
    assert first.startswith("- 2026-03-28T10:05:00.250Z | session=agent:main:main | project=/home/ada/code/lantern | ")
    assert first.endswith(f". {links}")
    assert second == (
        "- 2026-03-27T23:30:00.000Z | session=s-2 | project=none | The storm lamp of lantern-core was rebuilt so that"
        f" it burns through a whole winter night. [[memory/2026-03-27T23-30-00.000Z--{two}--compaction.md|compaction]]"
    )
    assert rendered.text == (
        "# Working Memory\n\n## Session Ledger (Last 30 Days)\n\n"
        f"### 2026-03-28\n\n{first}\n\n### 2026-03-27\n\n{second}"
    )
    assert (rendered.rows, rendered.clipped, rendered.shown) == (2, 0, {(key, "s-1"), (two, "s-2")})
    assert rendered.tokens == estimate_tokens(rendered.text)
    warned = page(golden_files(), warning="2 files changed: signet-sync violations list")
    warning = "\n\n> [!warning] 2 files changed: signet-sync violations list"
    assert warned.text == rendered.text.replace("\n\n", f"{warning}\n\n", 1), "it costs nothing of the budget"


def test_a_day_page_and_a_month_page_word_by_word():
    assert day_text("default", "2026-03-28", ["- one", "- two"]) == (
        "# Sessions of 2026-03-28\n\n2 sessions · all of [[ledger/2026-03.md|2026-03]]\n\n- one\n- two"
    )
    assert month_text("default", "2026-03", [("2026-03-28", 2), ("2026-03-01", 1)]) == (
        "# Sessions of 2026-03\n\n3 sessions\n\n"
        "- [[ledger/2026/03/28.md|2026-03-28]] · 2 sessions\n- [[ledger/2026/03/01.md|2026-03-01]] · 1 session"
    )
    for text in (day_text("scout", "2026-03-28", ["- one"]), month_text("scout", "2026-03", [("2026-03-28", 1)])):
        assert "\n\n1 session" in text and "[[agents/scout/ledger/2026" in text


# ── sections ──

# ── rows ──


def test_rows_come_newest_first_and_ties_by_token():
    captured = ["2026-03-20T10:00:00.000Z", "2026-03-21T10:00:00.000Z", *["2026-03-21T09:00:00.000Z"] * 3]
    files = dict(summary(session_id=f"s-{n}", captured_at=moment) for n, moment in enumerate(captured))
    ties = sorted(("s-2", "s-3", "s-4"), key=lambda name: token_for(session_id=name))
    assert names(page(files)) == ["s-1", *ties, "s-0"]
    assert re.findall("^### .*", page(files).text, re.MULTILINE) == ["### 2026-03-21", "### 2026-03-20"]


@pytest.mark.parametrize(
    ("ended_at", "day", "shown"),
    [
        ("2026-03-21T23:59:59.999Z", "2026-03-21", "2026-03-21T23:59:59.999Z"),
        ("2026-03-22T01:00:00+02:00", "2026-03-21", "2026-03-21T23:00:00.000Z"),
        ("2026-03-21T22:00:00-05:00", "2026-03-22", "2026-03-22T03:00:00.000Z"),
        ("2026-03-21 23:59:59.9999999Z", "2026-03-21", "2026-03-21T23:59:59.999Z"),
        (None, "2026-03-20", "2026-03-20T10:00:00.000Z"),
    ],
)
def test_days_are_days_in_utc(ended_at, day, shown):
    rendered = page(dict([summary(captured_at="2026-03-20T10:00:00.000Z", ended_at=ended_at)]))
    assert f"### {day}\n\n- {shown} | " in rendered.text


def test_both_ends_of_the_window_are_inside_and_the_future_is_left_out():
    files = dict(
        summary(session_id=name, captured_at=moment)
        for name, moment in {
            "too-old": "2026-02-28T11:59:59.999Z", "oldest": "2026-02-28T12:00:00.000Z", "newest": NOW,
            "future": "2026-03-30T12:00:00.001Z",
        }.items()
    )  # fmt: skip
    assert names(page(files)) == ["newest", "oldest"]
    assert names(page(files, now_us=NOW_US + 1000)) == ["future", "newest"]


@pytest.mark.parametrize("fields", [{"project": "/tmp/scratch"}, {"project": None, "session_id": "test-1"}])
def test_noise_is_left_out_of_every_section(fields):
    body = "## Decisions\n\n- Never shown\n"
    files = {**golden_files(), **dict([summary(body=body, **fields), compaction(body=body, **fields)])}
    assert page(files).text == page(golden_files()).text


WHO = {"session_id": "s-9"}
BEST = {
    # description: (files of one session, kind of the row, kinds of its links)
    "summary before compaction before transcript": (
        [summary(**WHO), compaction(**WHO), transcript(**WHO), manifest(**WHO)],
        "summary", ["summary", "transcript", "compaction", "manifest"]),
    "only a transcript": ([transcript(**WHO)], "transcript", ["transcript"]),
    "a summary whose text changed": (
        [summary(content_sha256="0" * 64, **WHO), compaction(**WHO), transcript(**WHO)],
        "compaction", ["transcript", "compaction"]),
    "a summary without a field": (
        [summary(memory_sentence=ABSENT, **WHO), transcript(**WHO), manifest(**WHO)],
        "transcript", ["transcript", "manifest"]),
}  # fmt: skip


@pytest.mark.parametrize(("made", "kind", "links"), BEST.values(), ids=BEST.keys())
def test_a_row_comes_from_the_best_valid_artifact(made, kind, links):
    marked = {name: raw.replace(b"a dead broker", f"a dead {kind_of(name)}".encode()) for name, raw in made}
    (row,) = rows(page(marked))
    assert f"so that a dead {kind} no longer" in row
    assert [link.split("|")[1] for link in LINK.findall(row)] == links


def kind_of(name):
    return name.removesuffix(".md").rpartition("--")[2]


def test_the_newest_segment_speaks_and_is_linked():
    early, late = "2026-03-20T10:00:00.000Z", "2026-03-22T10:00:00.000Z"
    files = dict(
        f(captured_at=moment, **WHO) for f in (summary, transcript) for moment in (late, early)
    ) | dict([manifest(captured_at=early, **WHO), compaction(captured_at=early, **WHO)])  # fmt: skip
    (row,) = rows(page(files))
    assert row.startswith("- 2026-03-22T10:00:00.000Z")
    assert [link.split("|")[0] for link in LINK.findall(row)] == [
        path_for("summary", captured_at=late, **WHO),
        path_for("transcript", captured_at=late, **WHO),
        path_for("compaction", captured_at=early, **WHO),
        path_for("manifest", captured_at=early, **WHO),
    ]


# ── budget ──


def many(count, *, project=None, start="2026-03-29T10:00:00.000Z"):
    first = parse_instant(start)
    files = {}
    for number in range(count):
        said = {"captured_at": iso(first - number * 3600 * 1_000_000), "project": project}
        files.update([summary(session_id=f"s-{number:04d}", body="Nothing to decide.\n", **said)])
    return files


MANY = many(160)


def test_the_clipping_notice_names_every_month_of_the_window():
    assert make_clipping_notice(3, 90, "scout", ["2026-03", "2026-02"]) == (
        "- older ledger rows clipped: kept 3 of 90 in-window sessions within projection budget. "
        "All: [[agents/scout/ledger/2026-03.md]] [[agents/scout/ledger/2026-02.md]]"
    )
    files = many(160, start="2026-03-03T10:00:00.000Z")
    assert "All: [[ledger/2026-03.md]] [[ledger/2026-02.md]]" in page(files).text


@pytest.mark.parametrize(("budget", "count"), [(500, 160), (1200, 3), (5000, 160), (20_000, 160)])
def test_a_page_stays_within_its_budget(budget, count):
    said = statements(*((kind, f"{kind} {n}") for n in range(count) for kind in ("next", "blocker", "decision")))
    files = many(count, project="/code/lantern")
    rendered = page(files, budget=budget, head=said, nodes=compactions(count))
    assert rendered.tokens <= budget
