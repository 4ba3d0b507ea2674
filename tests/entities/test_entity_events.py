"""The ledger of entities: lines that are what was written, a chain that tells of every change, replay to the byte."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from functools import lru_cache

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from signet_sync.entities.documents import document as documents_document
from signet_sync.entities.documents import edits
from signet_sync.entities.documents.escaping import fit, fit_item
from signet_sync.entities.documents.patch import apply, change, whole
from signet_sync.entities.event_log import chain
from signet_sync.entities.event_log.chain import LogLine, lines_of, page_month, page_of, verify
from signet_sync.entities.event_log.events import (
    GENESIS,
    Event,
    LineProblem,
    WriteOutcome,
    damage,
    decode,
    encode,
    erased,
    key_of,
    replayed,
    request_sha256,
    seal,
    states_of,
)
from signet_sync.entities.event_log.replay import fold, settle
from signet_sync.entities.evidence import token_for, ulid_at
from signet_sync.errors import WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.timestamps import SECOND, iso, parse_instant

START = parse_instant("2026-03-28T09:00:00Z")
ENTITY = "p-aaaaaaaaaaaa"
TEXTS = st.text(st.one_of(st.characters(), st.sampled_from('"\\\n\r\x7f\x85\u2028\ufeff# -`<')), max_size=40)
PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)


class Ledger:
    """What an agent keeps: pages of lines, and the files that its events are about."""

    def __init__(self):
        self.pages: dict[str, bytes] = {}
        self.files: dict[str, str] = {}
        self.now = START
        self.count = 0

    def stamp(self, seconds=1):
        self.now += seconds * SECOND
        self.count += 1
        return ulid_at(self.now, self.count.to_bytes(10, "big")), iso(self.now)

    def event(self, op="set", **given):
        ulid, at = self.stamp()
        known = {"agent_id": "default", "entity_id": ENTITY, "actor": "agent", **given}
        return Event(id=ulid, token=token_for(ulid), at=at, op=op, **known)

    def outcome(self, event, state="committed"):
        ulid, at = self.stamp()
        return WriteOutcome(id=ulid, at=at, of=event.id, state=state)

    @property
    def lines(self):
        return [line for month in sorted(self.pages) for line in lines_of(month, self.pages[month])]

    @property
    def entries(self):
        found = [decode(line.text) for line in self.lines]
        return [entry for entry in found if not isinstance(entry, LineProblem)]

    def add(self, *entries):
        ulid, at = self.stamp(0)
        added = chain.add(self.lines, entries, outcome_id=ulid, at=at)
        for month, text in added.writes:
            self.pages[month] = self.pages.get(month, b"") + text.encode()
        return added.sealed[-len(entries) :]

    def put(self, op, text, *, state="committed", writes=True, file="profile", **given):
        """A write of a file, from the intention to its end, or as far as a crash lets it come."""
        before = self.files.get(file)
        payload = (
            whole(text) if before is None else change(documents_document.parse(before), documents_document.parse(text))
        )
        shas = {"file_before": None if before is None else text_sha256(before), "file_after": text_sha256(text)}
        [event] = self.add(self.event(op, file=file, payload=payload, **shas, **given))
        if writes:
            self.files[file] = text
        if state is not None:
            self.add(self.outcome(event, state))
        return event

    def last(self):
        return self.entries[-1].hash


def blank(**given):
    given = {"title": "Inner Critic", "entity_id": ENTITY, "agent_id": "default", "created_at": iso(START), **given}
    return documents_document.blank("part", **given)


def a_ledger():
    """Lines over two months: a create, two edits, one that failed."""
    return copy.deepcopy(_a_ledger())


@lru_cache
def _a_ledger():
    ledger = Ledger()
    ledger.put("create", documents_document.render(blank()))
    profile = edits.append_item(
        documents_document.parse(ledger.files["profile"]), "highlights", fit_item("Says what is due")
    )
    ledger.put("append_item", documents_document.render(profile), section="highlights", evidence=("memory/a.md#L3",))
    ledger.now = parse_instant("2026-04-02T09:00:00Z")
    profile = edits.replace(profile, "role", fit("Keeps the bar high.\n\nNever sleeps.")[0])
    ledger.put("set", documents_document.render(profile), section="role", state="written", reason="it said so")
    ledger.add(ledger.outcome(ledger.entries[-2], "committed"))
    ledger.put("set", documents_document.render(blank()), state="failed", writes=False)
    return ledger


def codes(lines, last=None, **given):
    return [finding.code for finding in verify(lines, known_last=last, **given)]


# ── lines ──


@given(PLAIN, TEXTS, st.lists(TEXTS, max_size=2), st.booleans())
def test_a_line_gives_back_what_was_sealed(value, reason, evidence, written):
    ledger = Ledger()
    event = ledger.event(
        payload={"value": value},
        reason=reason or None,
        evidence=tuple(evidence),
        state="written" if written else "pending",
    )
    sealed = seal(event, GENESIS)
    line = encode(sealed)
    assert decode(line) == decode(line + "\n") == sealed
    assert damage(sealed) is None
    # One line for every reader, and bytes that are UTF-8 whatever the text was.
    assert len((line + ".").splitlines()) == 1 and "\r" not in line
    assert json.loads(line.encode("utf-8"))["payload"] == json.loads(json.dumps({"value": value}))
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in line)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("", "not-json"),
        ("[]", "not-json"),
        ('{"v":1,', "not-json"),
        ("[" * 100_000, "not-json"),
        ('{"v":2}', "version-unknown"),
        ('{"id":"x"}', "version-unknown"),
        ('{"v":1}', "field-invalid"),
        ('{"v":1,"of":"x"}', "field-invalid"),
    ],
)
def test_what_is_no_line_of_ours_is_a_problem(line, code):
    assert decode(line).code == code


def test_a_line_in_another_form_is_no_line_of_ours():
    ledger = a_ledger()
    line = ledger.lines[2].text
    record = json.loads(line)
    assert decode(json.dumps(record)).code == "not-canonical"
    assert decode(line + " ").code == "not-canonical"
    assert decode(line.replace('"v":1', '"v":1,"v":1')).code == "not-canonical"
    for name, value in [
        ("op", "delete"), ("actor", "user"), ("state", "done"), ("at", "2026-03-28"), ("hash", "00"), ("id", "x"),
        ("token", "ev:20260328T090001Z-00000000000000000000000000"), ("payload", []), ("lint", [1]), ("reason", ""),
        ("unknown", 1), ("erased", "tombstones/default--x.md"),
    ]:  # fmt: skip
        assert decode(json.dumps(record | {name: value}, separators=(",", ":"))).code == "field-invalid", name


@pytest.mark.parametrize("value", [1.5, {1: 2}, b"x", {"deep": [object()]}])
def test_what_no_line_can_hold_is_refused(value):
    with pytest.raises(ValueError, match="payload"):
        seal(Ledger().event(payload={"value": value}), GENESIS)
    with pytest.raises(ValueError, match="field-invalid"):
        seal(Ledger().event(section=""), GENESIS)


# ── the chain ──


def test_a_ledger_as_it_was_written_has_no_findings():
    ledger = a_ledger()
    assert list(ledger.pages) == ["2026-03", "2026-04"]
    assert codes(ledger.lines, ledger.last(), agent_id="default", tombstones=()) == []
    # An index that has not seen the last lines is behind, and nothing is wrong with the ledger.
    assert codes(ledger.lines, ledger.entries[3].hash) == []
    assert codes([], None) == [] and codes([], GENESIS) == []


@given(st.data())
def test_every_changed_byte_is_found(data):
    ledger = a_ledger()
    page = b"".join(ledger.pages.values())
    position = data.draw(st.integers(0, len(page) - 2))
    byte = data.draw(st.integers(0, 255))
    assume(byte != page[position])
    changed = page[:position] + bytes([byte]) + page[position + 1 :]
    assert codes(lines_of("2026-04", changed), ledger.last())
    removed = page[:position] + page[position + 1 :]
    assert codes(lines_of("2026-04", removed), ledger.last())


@given(st.data())
def test_every_removed_moved_or_doubled_line_is_found(data):
    ledger = a_ledger()
    lines = [line._replace(month="2026-04") for line in ledger.lines]
    at = data.draw(st.integers(0, len(lines) - 1))
    to = data.draw(st.integers(0, len(lines) - 1))
    left = lines[:at] + lines[at + 1 :]
    assert set(codes(left, ledger.last())) & {"gap", "truncated", "reordered"}
    moved = [*left[:to], lines[at], *left[to:]]
    if moved != lines:
        assert "reordered" in codes(moved, ledger.last())
    assert "id-twice" in codes([*lines[:to], lines[at], *lines[to:]], ledger.last())
    assert codes(lines[:at], ledger.last()) == ["truncated"]


def test_a_line_that_was_made_to_fit_breaks_the_chain_after_it():
    ledger = a_ledger()
    lines = ledger.lines
    event = decode(lines[2].text)
    forged = seal(replace(event, payload={"whole": "something else"}), event.prev)
    lines[2] = lines[2]._replace(text=encode(forged))
    assert codes(lines, ledger.last()) == ["gap"]
    # Whoever forges the whole rest is found by what the index knows.
    rest = chain.follow([decode(line.text) for line in lines], GENESIS)
    lines = [line._replace(text=encode(entry)) for line, entry in zip(lines, rest, strict=True)]
    assert codes(lines, None) == []
    assert codes(lines, ledger.last()) == ["truncated"]


def test_findings_say_where_and_what_to_do():
    ledger = a_ledger()
    page = ledger.pages["2026-04"].replace(b"Never sleeps", b"Always sleeps")
    [finding] = verify([*lines_of("2026-03", ledger.pages["2026-03"]), *lines_of("2026-04", page)], known_last=None)
    assert (finding.code, finding.month, finding.number) == ("payload-changed", "2026-04", 1)
    assert finding.id == ledger.entries[4].id and finding.message and finding.hint


def test_pages_out_of_order_and_lines_on_the_wrong_page_are_found():
    ledger = a_ledger()
    march, april = (lines_of(month, page) for month, page in ledger.pages.items())
    assert "month-order" in codes([*april, *march])
    assert "month-wrong" in codes([line._replace(month="2026-03") for line in [*march, *april]])
    # A clock that goes back over the end of a month writes on to the page that there is.
    assert page_month("2026-03-31T23:59:59.999Z", "2026-04") == "2026-04"
    assert page_month("2026-05-01T00:00:00.000Z", "2026-04") == "2026-05"
    assert page_month("2026-05-01T00:00:00.000Z", None) == "2026-05"


def test_another_agents_events_and_unfounded_outcomes_are_found():
    ledger = a_ledger()
    ledger.add(ledger.event(agent_id="other"))
    assert codes(ledger.lines) == ["agent-mismatch"]
    assert len(codes(ledger.lines, agent_id="other")) == 4
    ledger = a_ledger()
    event = ledger.entries[0]
    ledger.add(ledger.outcome(event, "failed"), ledger.outcome(event, "written"), ledger.outcome(ledger.event()))
    assert codes(ledger.lines) == ["state-unfounded"] * 3
    assert states_of(ledger.entries)[event.id] == "committed"


@given(st.data())
def test_a_line_that_was_cut_off_is_closed_by_the_next_write(data):
    ledger = a_ledger()
    page = ledger.pages["2026-04"]
    start = page.rindex(b"\n", 0, -1) + 1
    cut = data.draw(st.integers(start, len(page) - 1))
    torn = page[start:cut] + data.draw(st.sampled_from([b"", b"\x00\x00\x00", b"\xe4\xb8"]))
    ledger.pages["2026-04"] = page[:start] + torn
    lost = bool(torn) and torn != page[start:-1]
    assert codes(ledger.lines) == ["torn"] * lost
    if data.draw(st.booleans()):
        ledger.now += 40 * 24 * 3600 * SECOND
    ledger.put("set", documents_document.render(blank()))
    assert codes(ledger.lines, ledger.last()) == []
    # Nothing that was there was taken away.
    assert ledger.pages["2026-04"].startswith(page[:start] + torn)
    if lost:
        lines = ledger.lines
        place = next(place for place, line in enumerate(lines) if '"of":"torn-' in line.text)
        assert codes(lines[:place] + lines[place + 1 :])
        lines[place - 1] = lines[place - 1]._replace(text=lines[place - 1].text + "x")
        assert codes(lines) == ["not-json"]


def test_a_crash_while_a_crash_is_accounted_for():
    ledger = a_ledger()
    ledger.pages["2026-04"] += b'{"v":1,"id":"01'
    ledger.pages["2026-04"] += b'\n{"v":1,"id":"02","of":"torn-'
    assert codes(ledger.lines) == ["torn", "torn"]
    ledger.pages["2026-04"] += b"\n"
    assert codes(ledger.lines) == ["torn", "torn"]
    ledger.put("set", documents_document.render(blank()))
    assert codes(ledger.lines, ledger.last()) == []


def test_the_last_lines_are_enough_to_go_on_from():
    ledger = a_ledger()
    entry = ledger.event()
    given = {"outcome_id": entry.id, "at": entry.at}
    assert chain.add(ledger.lines[-1:], [entry], **given) == chain.add(ledger.lines, [entry], **given)
    [first] = chain.add([], [entry], **given).sealed
    assert first.prev == GENESIS
    newer = [LogLine("2026-04", 1, '{"v":2}', True)]
    with pytest.raises(WorkspaceError, match="later version"):
        chain.add(newer, [entry], **given)


def test_damage_is_told_once_where_it_is():
    ledger = a_ledger()
    for change_it, code in [
        (lambda text: text[:-4] + ("00" if text[-4:-2] != "00" else "11") + text[-2:], "hash-mismatch"),
        (lambda text: text[:-1], "not-json"),
        (lambda text: text.replace('"v":1', '"v":7'), "version-unknown"),
        (lambda text: text.replace("1", " 1", 1), "not-canonical"),
    ]:
        lines = ledger.lines
        lines[3] = lines[3]._replace(text=change_it(lines[3].text))
        found = codes(lines, ledger.last())
        assert found[0] == code and set(found[1:]) <= {"state-unfounded"}


# ── removal ──


def test_an_erased_event_leaves_its_hashes_and_the_chain_whole():
    ledger = a_ledger()
    before = ledger.last()
    ledger.pages["2026-04"] += b'{"v":1,"reason":"it said so'
    ledger.put("set", documents_document.render(blank()))
    ledger.pages["2026-04"] = page_of(
        chain.erase(lines_of("2026-04", ledger.pages["2026-04"]), lambda each: "said so" in str(each), "default--x")
    )
    assert b"Never sleeps" not in ledger.pages["2026-04"] and b"it said so" not in ledger.pages["2026-04"]
    assert before in [entry.hash for entry in ledger.entries]
    assert codes(ledger.lines, ledger.last(), tombstones={"default--x"}) == []
    assert codes(ledger.lines, ledger.last(), tombstones=()) == ["erased-unfounded"]
    event = next(entry for entry in ledger.entries if isinstance(entry, Event) and entry.erased)
    assert (event.payload, event.reason, event.evidence) == (None, None, ())
    assert event.payload_sha256 == seal(a_ledger().entries[4], event.prev).payload_sha256
    # What was cut off and closed goes with it, whatever it held; damage that nobody closed stays for a person to see.
    damaged = [*ledger.lines[:2], LogLine("2026-03", 3, "{", True), *ledger.lines[2:]]
    assert chain.erase(damaged, lambda _: False, "y") == damaged
    ledger.pages["2026-04"] += b'{"cut'
    ledger.put("set", documents_document.render(blank()))
    assert b'{"cut' not in page_of(chain.erase(ledger.lines, lambda _: False, "y"))
    # Erased twice is erased once, and every other line stands as it stood.
    lines = chain.erase(ledger.lines, lambda _: False, "y")
    assert chain.erase(lines, lambda _: False, "y") == lines and codes(lines, ledger.last()) == []
    assert seal(replace(erased(event, "y"), erased=None), event.prev).payload_sha256 != event.payload_sha256


def test_a_payload_that_is_gone_without_a_tombstone_is_found():
    ledger = a_ledger()
    lines = ledger.lines
    record = json.loads(lines[0].text)
    del record["payload"]
    lines[0] = lines[0]._replace(text=json.dumps(record, separators=(",", ":"), ensure_ascii=False))
    assert codes(lines) == ["payload-changed"]


def test_a_file_with_an_erased_event_is_told_again_once_an_event_says_all_of_it():
    ledger = a_ledger()
    told = fold(ledger.entries)
    entries = [erased(e, "x") if isinstance(e, Event) and e.section == "highlights" else e for e in ledger.entries]
    blind = fold(entries)
    assert blind.texts == {} and [trouble.code for trouble in blind.trouble] == ["erased"]
    after = told.texts["profile"].replace("- Says what is due\n", "")
    event = ledger.event(
        "erase", file="profile", payload=whole(after), file_before=text_sha256(told.texts["profile"]),
        file_after=text_sha256(after), state="committed",
    )  # fmt: skip
    again = fold([*entries, *chain.follow([event], entries[-1].hash)])
    assert again.texts == {"profile": after} and again.trouble == ()


# ── replay ──

OPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from(["identity", "role"]), TEXTS),
        st.tuples(st.just("append"), st.sampled_from(["identity", "extensions"]), TEXTS),
        st.tuples(st.just("append_item"), st.sampled_from(["highlights", "evidence"]), TEXTS),
        st.tuples(st.just("prune_item"), st.just("highlights"), st.just("1")),
        st.tuples(st.just("status"), st.none(), st.sampled_from(["active", "quiet", "deprecated"])),
        st.tuples(st.just("human_edit"), st.integers(0, 40), TEXTS),
        st.tuples(st.just("notes"), st.sampled_from(["inbox", "focus"]), TEXTS),
        st.tuples(st.just("crlf"), st.none(), st.none()),
    ),
    max_size=8,
)
CRASHES = st.sampled_from(["committed", "committed", "committed", "written", "pending", "unwritten", "failed"])


def after_op(files, op, where, text):
    """Which file an operation changes, and what it makes of it; None where it comes to nothing."""
    file = "notes" if op == "notes" else "profile"
    document = documents_document.parse(files[file])
    if op in ("set", "append", "append_item", "notes"):
        if not any(c.isalnum() for c in text):
            return None
        if op == "append_item":
            return file, edits.append_item(document, where, fit_item(text))
        made = edits.replace if op == "set" else edits.append
        return file, made(document, where, fit(text)[0])
    if op == "prune_item":
        found = edits.items(documents_document.find(document, where))
        return (file, edits.prune_item(document, where, text)[0]) if found else None
    if op == "status":
        return file, edits.with_fields(document, {"status": text})
    content = files[file]
    if op == "crlf":
        content = content.replace("\n", "\r\n") if "\r" not in content else content.replace("\r\n", "\n")
    else:
        lines = content.split("\n")
        lines.insert(min(where, len(lines)), text.encode("utf-8", "replace").decode())
        content = "\n".join(lines)
    try:
        return file, documents_document.parse(content)
    except documents_document.DocumentProblem:
        return None


@given(OPS, st.data())
def test_replay_tells_the_files_to_the_byte_whatever_happened(ops, data):
    ledger = Ledger()
    ledger.put("create", documents_document.render(blank()), section=None)
    ledger.put("create", documents_document.render(blank(file="notes")), file="notes")
    for op, where, text in ops:
        made = after_op(ledger.files, op, where, text)
        if made is None:
            continue
        file, document = made
        crash = data.draw(CRASHES)
        ledger.put(
            {"notes": "append", "crlf": "human_edit"}.get(op, op),
            documents_document.render(document),
            file=file,
            writes=crash not in ("unwritten", "failed"),
            state={"unwritten": None, "pending": None}.get(crash, crash),
        )
        # Whoever comes next looks at the file first, and says what became of a write that nobody ended.
        for event in fold(ledger.entries).unsettled:
            how = settle(event, ledger.files[event.file])
            assert how != "unknown"
            ledger.add(ledger.outcome(event, how))
        told = fold(ledger.entries)
        assert told.texts == ledger.files
        assert told.trouble == () and told.unsettled == ()
    assert codes(ledger.lines, ledger.last()) == []


def test_a_payload_holds_the_lines_that_changed_and_all_of_what_was_set():
    before = blank()
    after = edits.replace(before, "role", fit("Keeps the bar high.\n\nNever sleeps.")[0])
    later = edits.replace(after, "role", fit("Keeps the bar high.\n\nSleeps late.")[0])
    later = edits.with_fields(later, {"updated_at": iso(START + SECOND)})
    least, stated = change(after, later), change(after, later, stated="role")
    assert [(edit["drop"], edit["text"]) for edit in least["edits"]] == [
        (1, f'updated_at: "{iso(START + SECOND)}"\n'),
        (1, "Sleeps late.\n"),
    ]
    assert "Keeps the bar high." in stated["edits"][1]["text"] and len(stated["edits"]) == 2
    assert change(after, after) == {"edits": []}
    # Edits count lines of the file as it was, however many came or went before them.
    many = edits.append(edits.append_item(before, "highlights", fit_item("x")), "identity", fit("a\n\nb")[0])
    assert apply(documents_document.render(before), change(before, many)) == documents_document.render(many)
    assert len(change(before, many)["edits"]) == 2
    # A part that does not end with a newline is no line of its own.
    old, new = (
        documents_document.parse(documents_document.render(each).replace("\n", "\r")) for each in (before, many)
    )
    assert change(old, new) == whole(documents_document.render(new))
    for payload in (least, stated, whole(documents_document.render(later))):
        assert apply(documents_document.render(after), payload) == documents_document.render(later)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"whole": 3},
        {"edits": "x"},
        {"edits": [{"line": 0, "drop": 0, "text": ""}]},
        {"edits": [{"line": 1, "drop": 9, "text": ""}]},
        {"edits": [{"line": 4, "drop": 0, "text": ""}]},
        {"edits": [{"line": 2, "drop": -1, "text": ""}]},
        {"edits": [{"line": 1, "drop": 1}]},
    ],
)
def test_a_payload_that_does_not_fit_changes_nothing(payload):
    assert apply("one\ntwo\n", payload) is None


def test_what_does_not_fit_stops_its_file_alone():
    ledger = a_ledger()
    ledger.put("create", documents_document.render(blank(file="notes")), file="notes")
    entries = [entry for entry in ledger.entries if getattr(entry, "section", None) != "highlights"]
    told = fold(entries)
    assert list(told.texts) == ["notes"]
    [trouble] = told.trouble
    assert (trouble.file, trouble.code, trouble.event_id) == ("profile", "mismatch", ledger.entries[4].id)
    assert "another file" in trouble.message
    lied = [replace(e, file_after=GENESIS) if isinstance(e, Event) and e.op == "create" else e for e in ledger.entries]
    assert fold(lied).texts == {} and len(fold(lied).trouble) == 2


def test_a_proposal_changes_no_file():
    ledger = a_ledger()
    ledger.add(ledger.event("propose", file="profile", section="role", payload={"whole": "x", "op": "set"}))
    ledger.add(ledger.outcome(ledger.entries[-1], "committed"))
    ledger.add(ledger.event("propose", file="profile", section="role", payload={"whole": "x", "op": "set"}))
    told = fold(ledger.entries)
    assert told.texts == ledger.files
    assert [event.op for event in told.unsettled] == ["propose"]
    assert settle(told.unsettled[0], ledger.files["profile"]) == "written"


def test_an_unfinished_write_is_told_by_its_file_else_by_its_section():
    ledger = a_ledger()
    old = documents_document.parse(ledger.files["profile"])
    new = edits.replace(old, "role", fit("Something new.")[0])
    shas = [documents_document.body_sha(documents_document.find(document, "role")) for document in (old, new)]
    event = ledger.put(
        "set", documents_document.render(new), state=None, writes=False, section="role", before=shas[0], after=shas[1]
    )
    assert settle(event, documents_document.render(old)) == "failed"
    assert settle(event, documents_document.render(new)) == "written"
    # A person was there in the meantime.
    assert settle(event, documents_document.render(old) + "x", shas[0]) == "failed"
    assert settle(event, documents_document.render(new) + "x", shas[1]) == "written"
    assert settle(event, "x", text_sha256("x")) == settle(event, "x") == settle(event, None) == "unknown"
    created = ledger.event("create", file="profile", payload=whole("x"), file_after=text_sha256("x"))
    assert settle(created, None) == "failed" and settle(created, "x") == "written"


# ── idempotency ──


def test_a_key_gives_the_first_answer_again_and_no_other():
    ledger = a_ledger()
    key, other = key_of("default", "once"), key_of("default", "twice")
    asked = request_sha256({"op": "set", "text": "é"})
    assert asked == request_sha256({"text": "é", "op": "set"}) != request_sha256({"op": "set", "text": "e"})
    assert replayed(ledger.entries, key, asked) is None
    event = ledger.put("set", ledger.files["profile"], idempotency_key=key, request_sha256=asked)
    assert replayed(ledger.entries, key, asked) == event
    assert replayed(ledger.entries, key, request_sha256({})) == "conflict"
    assert replayed(ledger.entries, other, asked) is None
    ledger.put("set", ledger.files["profile"], idempotency_key=other, request_sha256=asked, state="failed")
    assert replayed(ledger.entries, other, asked) is None
    again = ledger.put("set", ledger.files["profile"], idempotency_key=other, request_sha256=asked)
    assert replayed(ledger.entries, other, asked) == again
    assert key_of("a", "once") != key != key_of("default", "once ")


def test_pages_come_back_as_they_are():
    for page in (b"", b"\n", b"a\nb", b"\xff\xfe\n\x00", "é\u2028\n".encode()):
        assert page_of(lines_of("2026-04", page)) == page
    assert lines_of("2026-04", b"a\nb") == [LogLine("2026-04", 1, "a", True), LogLine("2026-04", 2, "b", False)]
