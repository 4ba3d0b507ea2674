"""Checks the database: undamaged, consistent, and what it records about the vault."""

from __future__ import annotations

import os
import shlex

import apsw

from signet_sync.admin.doctor.installation import Finding, Installation, fine, problem, warning
from signet_sync.entities import store as entities_store
from signet_sync.errors import DatabaseCorrupt, DatabaseError
from signet_sync.formats.paths import display
from signet_sync.pages import conflict_copies
from signet_sync.storage.database import salvage
from signet_sync.storage.database.connection import (
    Database,
    is_odd,
    list_set_aside,
    mark_suspect,
    note_damage,
)
from signet_sync.storage.database.tables import TABLES
from signet_sync.sync.store import artifacts, passes, texts
from signet_sync.sync.store import counts as counts_store
from signet_sync.text.phrases import count_noun
from signet_sync.text.sanitizer import sanitizer_stamp

_SHOWN = 3  # paths named in a finding


def index(target: Installation) -> list[Finding]:
    """Checks every page of the database, full text, open violations, and databases moved aside before."""
    path = target.database
    if os.path.isdir(path):
        quoted = shlex.quote(path)
        remedy = f"mv {quoted} {quoted}.aside && {target.command('reindex')}"
        return [problem("database", f"{path} is a folder", remedy)]
    is_shut = target.is_unreadable or (os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK))
    if is_shut and target.chosen is None:
        return []  # unknown; another finding names the reason
    if path == ":memory:":
        return [fine("database", "in memory, for one command")]
    try:
        database = Database(path, readonly=True)
    except FileNotFoundError:
        return [warning("database", "there is no index yet", target.command("reindex"))]
    except DatabaseError as error:
        return [_unusable(target, error), *_set_aside(path)]
    try:
        return [*_bytes(target, database), *_rows(target, database), *_set_aside(path)]
    except (apsw.Error, DatabaseError) as error:
        return [_unusable(target, error), *_set_aside(path)]
    finally:
        database.connection.close()


def _unusable(target: Installation, error: apsw.Error | DatabaseError) -> Finding:
    translated = note_damage(error, target.database)
    if translated.code == "database-behind":
        return warning("database-behind", translated.message, target.command("reindex"), fix=True)
    if isinstance(translated, DatabaseCorrupt) or is_odd(error):
        return _report_damage(target, translated.message)
    return problem("database", f"{target.database}: {translated.message}", translated.hint)


def _report_damage(target: Installation, what: str) -> Finding:
    return problem("database", what, f"{target.command('reindex')} --full  # moves it aside, rebuilds it", fix=True)


def _bytes(target: Installation, database: Database) -> list[Finding]:
    problems = database.problems(closely=TABLES) or salvage.implausible_rows(database)
    if problems:
        if database.problems():
            # A pass may never read these pages, so mark the database: the next pass checks all pages. Wrong values need
            # no mark: a rebuild fixes them.
            mark_suspect(database.path)
        return [_report_damage(target, f"damaged: {problems[0]}")]
    if not texts.is_in_step(database):
        return [problem("full-text", "out of step with its rows", target.command("reindex"), fix=True)]
    return [fine("database", database.path)]


def _rows(target: Installation, database: Database) -> list[Finding]:
    found = []
    counts = counts_store.verdict_counts(database)
    open_ = counts.get("violation", 0)
    if open_:
        words = f"{count_noun(open_, 'open violation')}: sealed files that changed or are gone"
        found.append(problem("vault", words, target.command("violations list")))
    if counts.get("invalid"):
        found.append(warning("vault", f"invalid files: {counts['invalid']}", target.command("check")))
    found += _secrets(target, database)
    drifted = entities_store.drift(database)
    if drifted:
        what = count_noun(len(drifted), "entity file is", "entity files are")
        words = f"{what} not what their events say, the first {display(drifted[0].path)}: {drifted[0].message}"
        found.append(problem("entities", words, target.command("entity check")))
    found += _copies(target, database)
    if passes.is_halted(database):
        words = f"halted: {display(passes.halt_message(database))}; nothing was removed"
        accept = f"{target.command('reindex')} --accept-removals"
        remedy = f"put it right (mount memory/, or wait for the sync); only if all of it is to go for good: {accept}"
        found.append(problem("halt", words, remedy))
    return found


def _secrets(target: Installation, database: Database) -> list[Finding]:
    """Reports artifacts written before the sanitizer could find the secrets that it finds in them now."""
    paths = counts_store.list_suspected(database)
    if not paths:
        return []
    shown = ", ".join([*map(display, paths[:_SHOWN]), *(["…"] if len(paths) > _SHOWN else [])])
    words = f"files that seem to hold a secret: {len(paths)} ({shown})"
    if not (artifacts.sanitizer_of_rows(database) or "").startswith(sanitizer_stamp()):
        words += f"; not all of them were checked by this version: {target.command('reindex')}"
    reason = "--reason REASON  # takes it out of the files; index and pages leave it out already"
    return [warning("secrets", words, f"{target.command('redact')} --all {reason}")]


def _copies(target: Installation, database: Database) -> list[Finding]:
    """Reports copies that a sync service put beside files: either of the two may have the text the user wants."""
    paths = [one.path for one in counts_store.problems(database) if one.code == "conflict-copy"]
    paths += [one.path for one in conflict_copies.find(target.root)]
    if not paths:
        return []
    words = f"conflict copies of a sync service: {len(paths)}, the first {display(min(paths))}"
    remedy = f"{target.command('reindex')}  # lists them; compare each with its original and delete one"
    return [warning("copies", words, remedy)]


def _set_aside(path: str) -> list[Finding]:
    """Returns one finding for each damaged database that was moved aside."""
    return [
        warning(
            "database-aside",
            f"a damaged one was moved aside: {os.path.basename(name)}; its readable rows were taken over",
            f"rm {shlex.quote(name)}*  # and check the disk",
        )
        for name in list_set_aside(path)
    ]
