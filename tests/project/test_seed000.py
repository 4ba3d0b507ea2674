"""What the specification's validation list says of the page, end to end; each test is named after its item.

The other items: 4 and 9 to 11 `tests/sync/test_indexing.py` and `tests/reliability/test_resurrection.py`, 5
`tests/sessions/test_session_flow.py`, 6 `tests/formats/test_body.py` and `test_bad_input.py`, 7
`tests/text/test_sanitizer.py`, 8 `tests/reliability/test_crash_points.py`, 12 `test_agents_apart.py`, 13
`tests/pages/test_memory_page.py`.
"""

from __future__ import annotations

import re
from collections import deque

import artifacts_fixture as made
import pytest
from workbench import tree

from benchmarks.corpus import write_corpus
from signet_sync.formats.body import normalize
from signet_sync.formats.paths import targets
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.sentences import SentenceSubject, acceptable, is_sound

ROW = re.compile(r"^- (\S+) \| session=(.+?) \| project=(.+?) \| (.+?) (\[\[.*\]\])$")


def ledger(page):
    """The ledger part of a page, as lines."""
    lines = page.split("## Session Ledger (Last 30 Days)\n", 1)[1].split("\n## ", 1)[0].split("\n")
    return [line for line in lines if line]


def rows(page):
    """Timestamp, session, project, sentence and links of every ledger row."""
    return [match.groups() for line in ledger(page) if (match := ROW.match(line))]


def reachable(vault, start):
    """Every path that wikilinks lead to from a page, through generated pages and manifests; broken ones apart."""
    seen, broken, ahead = {start}, [], deque([start])
    while ahead:
        path = ahead.popleft()
        for target in targets(vault.page(path)):
            if not (vault / target).is_file():
                broken.append((path, target))
            elif target not in seen:
                seen.add(target)
                if not target.startswith("memory/"):
                    ahead.append(target)
    return seen, broken


@pytest.mark.parametrize("sessions", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_01_window_of_1500_sessions_keeps_the_newest_rows_says_so_and_links_them_all(vault, sessions):
    written = write_corpus(vault.root, sessions, per_day=sessions / 30, agents=1)
    document = vault.reindex()
    page = document["agents"]["default"]
    assert document["counts"]["indexed"] == 3 * sessions
    assert page["sessions_in_window"] == sessions
    assert page["rows_rendered"] + page["rows_clipped"] == sessions
    assert 0 < page["rows_rendered"] < sessions
    assert page["tokens"] <= 5000

    text = vault.page()
    shown = rows(text)
    assert ledger(text)[0].startswith(
        f"- older ledger rows clipped: kept {len(shown)} of {sessions} in-window sessions within projection budget."
    )
    newest = sorted(written, key=lambda s: parse_instant(s["ended_at"] or s["captured_at"]), reverse=True)
    assert [row[0] for row in shown] == [s["ended_at"] or s["captured_at"] for s in newest[: len(shown)]]
    assert [row[3] for row in shown] == [s["sentence"] for s in newest[: len(shown)]]

    seen, broken = reachable(vault, "MEMORY.md")
    assert not broken
    assert {s["paths"]["summary"] for s in written} <= seen


LOW = {
    "a template": "Worked on task.",
    "too short": "Lantern got a fix in src/queue.py.",
    "too long": "In lantern " + "very " * 60 + "much was done to src/queue.py.",
    "no end": "In lantern the retry loop of src/queue.py was bounded so that a dead broker no longer blocks",
    "no anchor": "The retry loop was bounded today so that a dead broker no longer blocks any start at all.",
}


def test_02_sentence_floor_rejects_low_signal_rows(vault):
    paths = [vault.session(n, memory_sentence=low)["summary"] for n, low in enumerate(LOW.values(), 1)]
    low = {note["path"] for note in vault.reindex()["notes"] if note["code"] == "sentence-below-floor"}
    assert low >= set(paths)
    found = rows(vault.page())
    assert len(found) == len(LOW)
    for number, (path, (why, sentence), row) in enumerate(zip(paths, LOW.items(), found, strict=True), 1):
        _, _, project, shown, link = row
        assert shown != sentence and path in link, why
        text = normalize((vault / path).read_text().split("---\n", 2)[2])
        context = SentenceSubject(text, project, "summary", "2026-03-28")
        assert is_sound(shown, context) and acceptable(shown, context), why
        assert f"Session {number}" in shown and "lantern" in shown, why


def test_03_wikilinks_are_relative_to_the_workspace_root_and_resolve(vault):
    for number in range(1, 5):
        vault.session(number)
    vault.session(5, agent_id="researcher")
    vault.put(made.compaction(**_who(2)))
    vault.reindex()
    pages = [p for p in tree(vault.root, but={".signet", "memory"}) if p.endswith(".md")]
    assert {"MEMORY.md", "agents/researcher/MEMORY.md", "ledger/2026-03.md", "ledger/2026/03/28.md"} <= set(pages)
    found = [(page, target) for page in pages for target in targets(vault.page(page))]
    assert len(found) > 20
    for page, target in found:
        assert target.startswith(("memory/", "ledger/", "agents/researcher/ledger/")), (page, target)
        assert (vault / target).is_file(), (page, target)
    assert "[[memory/2026-03-27T10-02-00.000Z--" in vault.page()


def _who(number):
    from workbench import numbered

    return {k: v for k, v in numbered(number).items() if k in ("session_id", "captured_at", "memory_sentence")}
