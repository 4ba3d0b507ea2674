"""The graph on the page: marks that never overlap, a line of time for any dates, every link, hostile labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import artifacts_fixture as made
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ui_pages import Elements, visitor
from workbench import Vault, place_of

from signet_sync import web
from signet_sync.errors import UsageError
from signet_sync.formats.calendar import week_of
from signet_sync.formats.timestamps import DAY, instant_of, parse_instant
from signet_sync.storage.database.connection import Database
from signet_sync.web.charts import axis as charts_axis
from signet_sync.web.charts import graph
from signet_sync.web.charts.axis import WIDTH, Axis
from signet_sync.web.charts.graph import HEIGHT, STACK, Lane, MarkTarget, Moment
from signet_sync.web.request import Site, ViewRequest, WebPage
from signet_sync.web.views import graph as views_graph
from signet_sync.web.views import network, node

pytest.importorskip("starlette", reason="the extra `ui` is not installed")

FIRST, LAST = parse_instant("0001-01-01T00:00:00Z") or 0, parse_instant("9999-12-31T23:59:59Z") or 0
NOW = parse_instant("2026-03-29T12:00:00Z") or 0
ALIKE = 4  # links of one kind that are followed
HOSTILE = '"><img src=x onerror=alert(1)><svg onload=alert(2)> {{ 1001 * 7 }} </title>\u202e'

instants = st.integers(FIRST, LAST)
spans = st.tuples(instants, st.integers(0, 30 * 365 * DAY)).map(lambda one: (one[0], min(sum(one), LAST)))


# ── the line of time ──


def is_whole(axis: Axis) -> bool:
    """Whether the cells follow each other without a gap, are so many that they can be read, and are made of slots."""
    joined = all(before.last_us + 1 == after.first_us for before, after in pairwise(axis.cells))
    few = (
        1 <= len(axis.cells) <= max(charts_axis.MOST_QUARTERS, charts_axis.MOST_WEEKS)
        and axis.slots <= 14 * charts_axis.MOST_QUARTERS
    )
    return joined and few and axis.slots * axis.slot_us == axis.last_us + 1 - axis.first_us


@given(spans, instants)
def test_a_line_of_time_holds_the_newest_sessions_whenever_they_were(span: tuple[int, int], now_us: int) -> None:
    earliest, latest = span
    axis = charts_axis.whole(earliest, latest, now_us)
    assert is_whole(axis)
    newest = min(latest, max(now_us, earliest))
    assert axis.first_us <= newest <= axis.last_us
    assert axis.key_of(newest) == axis.cells[-1].key
    assert axis.first_us <= earliest or len(axis.cells) == charts_axis.MOST_QUARTERS


@given(instants)
def test_every_week_and_its_quarter_can_be_shown(us: int) -> None:
    week = week_of(us)
    days = charts_axis.within(week)
    assert days is not None
    assert is_whole(days)
    assert days.first_us <= us <= days.last_us
    quarter = charts_axis.above(week)
    assert quarter is not None
    weeks = charts_axis.within(quarter)
    assert weeks is not None
    assert is_whole(weeks)
    assert week in [cell.key for cell in weeks.cells]
    assert charts_axis.titled(week) != charts_axis.titled(quarter)
    for period in (week, quarter):
        assert all(charts_axis.within(other) for other in charts_axis.beside(period))


@pytest.mark.parametrize(
    "period",
    ["", "2026", "2026-Q5", "2026-W54", "2025-W53", "0000-Q1", "0000-W01", "2026-W1", "２０２６-Q1", "2026-Q1\n"],
)
def test_what_is_no_quarter_and_no_week_is_none(period: str) -> None:
    assert charts_axis.within(period) is None


# ── marks ──

ALL_TIME = charts_axis.until("2026-Q1", parse_instant("2021-05-05T05:05:05Z") or 0)
QUARTER, WEEK = charts_axis.within("2026-Q1"), charts_axis.within("2026-W13")
slots = st.dictionaries(st.integers(-3, 300), st.integers(-1, 5_000), max_size=60)


def is_readable(lane: Lane, most: int) -> bool:
    """Whether no mark overlaps another or leaves the lane, and all are large enough and not too many."""
    boxes = [mark.box for mark in lane.marks]
    inside = all(
        box.x >= 0 and box.y >= 0 and box.x + box.width <= WIDTH and box.y + box.height <= HEIGHT for box in boxes
    )
    apart = all(
        one.x + one.width <= other.x
        or other.x + other.width <= one.x
        or one.y + one.height <= other.y
        or other.y + other.height <= one.y
        for place, one in enumerate(boxes)
        for other in boxes[:place]
    )
    return inside and apart and len(boxes) <= most and all(box.width > 4 and box.height > 4 for box in boxes)


def points(path: str) -> Iterator[tuple[float, float]]:
    """The corners of a path of bars."""
    for left, foot, top, right in re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)H([\d.]+)V[\d.]+z", path):
        yield from ((float(left), float(foot)), (float(right), float(top)))


@given(st.sampled_from([ALL_TIME, QUARTER, WEEK]), slots, st.integers(0, 5_000))
def test_frames_never_overlap_and_never_become_many(axis: Axis, counts: Mapping[int, int], peak: int) -> None:
    targets = {cell.key: MarkTarget("arc", cell.title, node="a-aaaaaaaaaaaa") for cell in axis.cells}
    lane = graph.framed(axis, counts, targets, peak)
    assert is_readable(lane, len(axis.cells))
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points(lane.bars))
    drawn = {slot for slot, sessions in counts.items() if 0 <= slot < axis.slots and sessions > 0}
    assert lane.bars.count("z") == len(drawn)


@given(st.lists(st.integers(0, 7 * 6 - 1), max_size=120), st.integers(0, 200), slots)
def test_sessions_never_overlap_and_a_crowd_is_one_mark(held: list[int], known: int, more: Mapping[int, int]) -> None:
    counts = dict(more)
    for slot in held:
        counts[slot] = max(counts.get(slot, 0), 0) + 1
    moments = [
        Moment(
            WEEK.first_us + slot * WEEK.slot_us + number, MarkTarget("summary", f"session {number}", node=f"s-{number}")
        )
        for number, slot in enumerate(held)
    ][:known]
    lane = graph.stacked(WEEK, counts, moments, MarkTarget("crowd", "many", period="2026-W13"))
    assert is_readable(lane, WEEK.slots * STACK)
    inside = {slot: sessions for slot, sessions in counts.items() if 0 <= slot < WEEK.slots and sessions > 0}
    assert sum(mark.sessions for mark in lane.marks) == sum(inside.values())


# ── a workspace ──


class Shown(NamedTuple):
    """A workspace, and its pages."""

    site: Site
    client: Any

    def ask(self, path: Mapping[str, str] = {}, agent: str = "default", **query: str) -> ViewRequest:
        return ViewRequest(self.site, agent, path, query, NOW)


def sessions() -> Iterator[dict[str, Any]]:
    """Three weeks of a thread with two sessions each, a thread of hostile names, a session of another agent."""
    lantern = {"project": "/home/ada/code/lantern", "harness": "codex"}
    for number in range(6):
        moment = datetime(2026, 3, 3, 10, tzinfo=UTC) + timedelta(weeks=number // 2, hours=5 * (number % 2))
        yield lantern | named(number, moment)
    yield lantern | named(6, datetime(2025, 6, 3, 10, tzinfo=UTC))
    for number in (7, 8):
        sentence = f"In lantern session {number} the loop of src/queue.py was bounded {HOSTILE}."
        project = f"/home/ada/code/{HOSTILE.replace('/', '')}"
        moment = datetime(2026, 3, 10, number, tzinfo=UTC)
        yield {
            **named(number, moment),
            "project": project,
            "memory_sentence": sentence,
            "body": f"# {HOSTILE}\n\n{HOSTILE}\n",
        }
    yield {**named(9, datetime(2026, 3, 12, tzinfo=UTC)), "agent_id": "scout"}


def named(number: int, moment: datetime) -> dict[str, Any]:
    return {
        "session_id": f"5e5510{number:02d}-0000-4000-8000-{number:012d}",
        "captured_at": moment.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "body": f"# Session {number}\n\n## Decisions\n\n- Lantern keeps its word number{number}x in src/queue.py.\n",
        "memory_sentence": f"In lantern step number {number} bounded the retry loop of src/queue.py so that it ends.",
    }


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    from starlette.testclient import TestClient

    from signet_sync.web.app import make

    folder = tmp_path_factory.mktemp("graph")
    with pytest.MonkeyPatch.context() as machine:
        for name, place in (("HOME", "home"), ("SIGNET_STATE", "state"), ("SIGNET_CONFIG", "config.toml")):
            machine.setenv(name, str(folder / place))
        vault = Vault(folder / "vault")
        for one in sessions():
            vault.put(dict([made.summary(**one), made.transcript(**one)]))
        vault.reindex()
        site = Site(place_of(vault.root, str(vault.db)), "default")
        client = TestClient(make(site, "t" * 43, 8080), base_url="http://127.0.0.1:8080")
        client.get(f"/?token={'t' * 43}")
        yield Shown(site, client)


def picture(shown: Shown, **query: str) -> WebPage:
    return views_graph.graph(shown.ask(**query))


def test_each_thread_has_a_lane_whose_marks_lead_to_epochs_arcs_and_sessions(shown: Shown) -> None:
    rows = {row.head.label: row for row in picture(shown).data["rows"]}
    assert rows["lantern"].sessions == 7
    assert [mark.target.kind for mark in rows["lantern"].lane.marks] == ["some", "epoch"]
    weeks = {row.head.label: row for row in picture(shown, at="2026-Q1").data["rows"]}
    assert [mark.target.kind for mark in weeks["lantern"].lane.marks] == ["arc"] * 3
    days = {row.head.label: row for row in picture(shown, at="2026-W10").data["rows"]}
    assert [mark.target.kind for mark in days["lantern"].lane.marks] == ["summary"] * 2


def test_the_text_of_an_arc_leads_to_its_sessions(shown: Shown) -> None:
    rows = {row.head.label: row for row in picture(shown, at="2026-Q1").data["rows"]}
    arc = rows["lantern"].lane.marks[0].target.node
    page = node.node(shown.ask({"node": arc}))
    assert set(page.data["links"]) == {link.id for link in page.data["groups"]["children"]}
    prose = shown.client.get(f"/graph/{arc}").text.partition('<div class="told prose">')[2].partition("<section>")[0]
    assert all(f'href="/graph/{child}"' in prose for child in page.data["links"])


def test_words_and_order_choose_the_lanes(shown: Shown) -> None:
    lantern = picture(shown, q="LANTERN codex").data
    assert [row.sessions for row in lantern["rows"]] == [7] == [lantern["shown"]]
    assert picture(shown, q="nobody").data["rows"] == []
    assert [row.sessions for row in picture(shown, sort="newest", page="99").data["rows"]] == [7, 2]


def test_a_period_that_is_none_and_a_node_that_nobody_has_are_told(shown: Shown) -> None:
    for query in ({"at": "yesterday"}, {"until": "2026-W10"}):
        with pytest.raises(UsageError) as told:
            picture(shown, **query)
        assert told.value.code == "unknown-period"
    for address in ("/graph?at=yesterday", "/graph/s-aaaaaaaaaaaa", "/graph/%3Cscript%3E", "/graph/%00"):
        assert shown.client.get(address).status_code == 404, address


def test_no_agent_sees_a_node_of_another(shown: Shown) -> None:
    (row,) = views_graph.graph(shown.ask(agent="scout", at="2026-W11")).data["rows"]
    theirs = row.lane.marks[0].target.node
    assert shown.client.get(f"/graph/{theirs}?agent=scout").status_code == 200
    assert shown.client.get(f"/graph/{theirs}").status_code == 404
    assert theirs not in shown.client.get("/graph?at=2026-W11").text


# ── pages as a browser gets them ──


class Tags(Elements):
    """A page of the graph."""

    @property
    def onward(self) -> list[str]:
        """Addresses, but for what lies before and behind, which may be empty for long."""
        return [attrs["href"] or "" for tag, attrs in self.found if tag == "a" and "rel" not in attrs]


def test_every_link_of_the_graph_leads_somewhere_and_no_label_becomes_markup(shown: Shown) -> None:
    waiting, seen, kinds, hostile = ["/graph"], set[str](), Counter[str](), 0
    while waiting:
        address = waiting.pop()
        answer = shown.client.get(address)
        assert answer.status_code == 200, address
        tags = Tags(answer.text)
        names = {name for _, attrs in tags.found for name in attrs}
        assert not [name for name in names if name.startswith("on") or name == "style"], address
        assert not [tag for tag, attrs in tags.found if tag == "img" or (tag == "script" and "src" not in attrs)], (
            address
        )
        assert "7007" not in tags.text, address
        hostile += "onerror=alert(1)" in tags.text
        for link in tags.onward:
            kind = re.sub(r"[a-z2-7]{12}|\d", "", link)
            if link.startswith("/graph") and link not in seen and kinds[kind] < ALIKE:
                kinds[kind] += 1
                seen.add(link)
                waiting.append(link)
    assert hostile > 3
    assert {link[7] for link in seen if link.startswith("/graph/")} >= set("taesk")


def test_every_mark_of_the_picture_has_a_name_and_stands_in_the_list_too(shown: Shown) -> None:
    for query in ("", "?at=2026-Q1", "?at=2026-W11"):
        tags = Tags(shown.client.get(f"/graph{query}").text)
        marks = [attrs for tag, attrs in tags.found if tag == "a" and (attrs.get("class") or "").startswith("mark")]
        assert marks
        assert all(attrs["aria-label"] for attrs in marks)
        for attrs in marks:
            if not (attrs["class"] or "").endswith(("period", "day")):
                assert tags.onward.count(attrs["href"] or "") >= 2, attrs


def test_a_removed_session_is_in_no_picture(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    for number in (1, 2):
        vault.session(number)
    vault.reindex()
    site = Site(place_of(vault.root), "default")
    (gone,) = vault.rows("select node_id from thread_sessions order by latest_us desc limit 1")
    assert vault.call("remove", "5e551001-0000-4000-8000-000000000001", "--reason", "asked", "--yes").code == 0
    assert views_graph.graph(ViewRequest(site, "default", {}, {}, NOW)).data["extent"].sessions == 1
    with pytest.raises(UsageError):
        node.node(ViewRequest(site, "default", {"node": gone[0]}, {}, NOW))


def test_an_empty_workspace_says_so(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.reindex()
    page = views_graph.graph(ViewRequest(Site(place_of(vault.root), "default"), "default", {}, {}, NOW))
    assert page.data["extent"].sessions == 0


# ── the network ──


def test_the_network_begins_with_threads_and_grows_by_neighbours_of_its_agent_alone(shown: Shown) -> None:
    nodes = network.network(shown.ask()).data["nodes"]
    lantern = next(one for one in nodes if one.label.startswith("lantern"))
    assert {one.kind for one in nodes} == {"thread"} and len(nodes) == 2
    around = network.network(shown.ask(node=lantern.id)).data["nodes"]
    assert around[0].id == lantern.id and set(around[0].links) == {one.id for one in around[1:]}
    session = next(one for one in around if one.kind == "session")
    beyond = network.network(shown.ask(node=session.id)).data["nodes"]
    assert {"thread", "week", "fact"} <= {one.kind for one in beyond[1:]} | {"thread"}
    assert len(around) <= 1 + 2 * network.MORE and len(beyond) <= 1 + 6 * network.MORE
    for agent, node_id in (("scout", lantern.id), ("default", "t-aaaaaaaaaaaa"), ("default", HOSTILE)):
        with pytest.raises(UsageError):
            network.network(shown.ask(agent=agent, node=node_id))


def test_an_entity_is_linked_to_its_relationships_and_to_the_project_of_its_name(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.session(1, project="/home/ada/code/lantern")
    vault.reindex()
    for title in ("Jo", "lantern"):
        assert vault.call("entity", "create", "part", title).code == 0
    between = ("--type", "reviews", "--between", "jo", "lantern")
    assert vault.call("entity", "create", "relationship", "Jo reviews lantern", *between).code == 0
    request = ViewRequest(Site(place_of(vault.root), "default"), "default", {}, {}, NOW)
    found = {(one.kind, one.label): one for one in network.network(request).data["nodes"]}
    ids = {(kind, label): one.id for (kind, label), one in found.items()}
    assert ids["thread", "lantern (project)"] in found["entity", "lantern (entity)"].links
    relationship = next(one for one in found.values() if one.kind == "relationship")
    assert set(relationship.links) == {ids["entity", "Jo"], ids["entity", "lantern (entity)"]}
    keys = re.findall(r'<li data-kind="(\w+)"( hidden)?>', visitor(vault.root).get("/graph/network").text)
    assert {kind for kind, hidden in keys if not hidden} == {kind for kind, _ in found} < {kind for kind, _ in keys}


def test_the_library_of_the_network_is_the_one_that_was_published() -> None:
    """Version, licence and bytes of what is bundled: `npm pack cytoscape@VERSION`, its `dist/cytoscape.esm.min.mjs`."""
    folder = Path(web.__file__ or "").parent / "static" / "vendor"
    digests = {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert digests["cytoscape-3.35.0.js"] == "aa33b0103bbdb721aeb1506000cb6e056692400baba7264c552d000b09da01f2"
    assert set(digests) == {"cytoscape-3.35.0.js", "cytoscape.LICENSE.txt"}
    assert "Permission is hereby granted" in (folder / "cytoscape.LICENSE.txt").read_text("utf-8")


# ── many sessions ──


def filled(path: Path, threads: int, each: int) -> Site:
    """A database with rows of threads and their sessions, one every day, and nothing else."""
    database = Database(str(path))
    newest = instant_of(datetime(2026, 3, 29, tzinfo=UTC))
    with database.transaction():
        for thread in range(threads):
            name = f"t-{thread:012d}"
            database.execute(
                "insert into memory_thread_heads(agent_id, thread_id, thread_key, label, status, sessions, earliest_us,"
                " latest_us, node_id, source_type, source_ref, sample, told)"
                " values('default', ?, ?, ?, 'open', ?, 0, ?, '', '', '', '', '{}')",
                (name, name, f"thread {thread}", each, newest),
            )
            ended = [newest - session * DAY for session in range(each)]
            database.executemany(
                "insert into thread_sessions"
                " values('default', ?, ?, ?, ?, ?, ?, ?, 'summary', '', 'said', null, null, '{}')",
                [(name, f"{us}", name, us, us, week_of(us), f"s-{thread}-{us}") for us in ended],
            )
    database.connection.close()
    return Site(place_of(path.parent, str(path)), "default")


def looked(site: Site) -> tuple[WebPage, int]:
    """The picture, and how many rows were read for it."""
    read: list[str] = []

    def listen(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_ROW, lambda event: read.append(event["id"]))

    apsw.connection_hooks.append(listen)
    try:
        return views_graph.graph(ViewRequest(site, "default", {}, {}, NOW)), len(read)
    finally:
        apsw.connection_hooks.remove(listen)


def test_a_picture_of_ten_times_as_many_sessions_reads_no_more_rows(tmp_path: Path) -> None:
    (_, few), (page, many) = (looked(filled(tmp_path / f"{each}.db", 40, each)) for each in (20, 200))
    marks = [mark for row in page.data["rows"] for mark in row.lane.marks]
    assert len(page.data["rows"]) == views_graph.LANES
    assert len(marks) <= views_graph.LANES * charts_axis.MOST_QUARTERS
    assert page.data["rest"].threads == 40 - views_graph.LANES
    assert sum(row.sessions for row in page.data["rows"]) + page.data["rest"].sessions == page.data["shown"] == 8_000
    # What is counted is counted in the index; slots with sessions are rows, of which a longer time has more.
    assert many <= few + views_graph.LANES * 14 * charts_axis.MOST_QUARTERS
