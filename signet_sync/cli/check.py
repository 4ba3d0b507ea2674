"""`check`: the verdicts of every file, for people, CI annotations and SARIF; nothing is written."""

from __future__ import annotations

from typing import Any

import click

from signet_sync.cli import Context, counted, emit, json_option, now_option, pass_context, resolve_now

_LEVELS = {"invalid": "error", "violation": "error", "tombstoned": "error", "ignored": "warning"}


@click.command()
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "sarif", "github"]), default="text", show_default=True
)
@click.option("--with-index", is_flag=True, help="Compare with the seals of the index too (opened read-only).")
@click.option("--strict", is_flag=True, help="Notes fail too, except broken links to git-ignored files.")
@click.option("--agent", metavar="ID", help="Judge this agent's artifacts only.")
@now_option
@json_option
@pass_context
def check(
    context: Context,
    form: str,
    with_index: bool,
    strict: bool,
    agent: str | None,
    now: str | None,
    as_json: bool,
) -> int:
    """Judge every file of the vault by itself. Exit 1 where something is invalid, violated or should be gone."""
    from signet_sync.agent import check as agent_check
    from signet_sync.cli.reindex import progress_bar

    form = "json" if as_json else form
    instant = resolve_now(now)
    database = None
    if with_index:
        from signet_sync.errors import DatabaseError
        from signet_sync.index.database import Database

        try:
            database = Database(context.database_path(), readonly=True, traceless=True)
        except FileNotFoundError as error:
            raise DatabaseError(
                "there is no index to compare with", path=str(error), hint="run signet-sync reindex first"
            ) from None
    with progress_bar("checking", show=form == "text" and not context.quiet) as advance:
        checked = agent_check.check(
            context.root, context.settings(), now_us=instant, agent=agent, database=database, progress=advance
        )
    document = agent_check.document(context.root, checked, instant, strict=strict)
    if form == "json":
        emit(document)
    elif form == "sarif":
        emit(sarif(document))
    elif form == "github":
        click.echo("\n".join(github(document)), nl=bool(github(document)))
    else:
        _text(document)
    return 0 if document["ok"] else 1


def _text(document: dict[str, Any]) -> None:
    from signet_sync.cli.reindex import show_problems

    counts = document["counts"]
    click.echo(
        f"{counts['indexed']} valid · {counts['invalid']} invalid · {counted(counts['violation'], 'violation')}"
        f" · {counts['tombstoned']} should be gone · {counted(counts['tombstones'], 'tombstone')}"
        f" · {counts['ignored']} ignored"
    )
    show_problems(document["problems"], document["notes"])
    click.secho("ok" if document["ok"] else "not ok", fg="green" if document["ok"] else "red", bold=True)


def _escape(text: str, *, in_property: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if in_property else text


def github(document: dict[str, Any]) -> list[str]:
    """GitHub workflow annotations: one line a problem, foreign names left out."""
    lines = []
    for problem in document["problems"]:
        if problem["code"] in ("foreign-name", "temporary"):
            continue
        level = _LEVELS[problem["verdict"]]
        message = problem["message"] + (f". {problem['hint']}" if problem["hint"] else "")
        lines.append(
            f"::{level} file={_escape(problem['path'], in_property=True)},"
            f"title={_escape(problem['code'], in_property=True)}::{_escape(message)}"
        )
    lines += [
        f"::notice file={_escape(note['path'], in_property=True)},title={note['code']}::{_escape(note['message'])}"
        for note in document["notes"]
    ]
    return lines


def sarif(document: dict[str, Any]) -> dict[str, Any]:
    """A SARIF 2.1.0 log of a check."""
    from urllib.parse import quote

    from signet_sync import __version__
    from signet_sync.reconcile import HINTS

    entries = [
        (p["code"], _LEVELS[p["verdict"]], p["path"], p["message"] + (f". {p['hint']}" if p["hint"] else ""))
        for p in document["problems"]
        if p["code"] not in ("foreign-name", "temporary")
    ]
    entries += [(n["code"], "note", n["path"], n["message"]) for n in document["notes"]]
    rules = sorted({code for code, *_ in entries})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "signet-sync",
                        "version": __version__,
                        "informationUri": "https://pypi.org/project/signet-sync/",
                        "rules": [
                            {
                                "id": code,
                                "shortDescription": {"text": code.replace("-", " ")},
                                **({"help": {"text": HINTS[code]}} if code in HINTS else {}),
                            }
                            for code in rules
                        ],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"WORKSPACE": {"description": {"text": "the root of the workspace"}}},
                "results": [
                    {
                        "ruleId": code,
                        "ruleIndex": rules.index(code),
                        "level": level,
                        "message": {"text": message},
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": {"uri": quote(path), "uriBaseId": "WORKSPACE"},
                                    "region": {"startLine": 1},
                                }
                            }
                        ],
                    }
                    for code, level, path, message in entries
                ],
            }
        ],
    }
