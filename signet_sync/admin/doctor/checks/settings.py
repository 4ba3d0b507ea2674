"""Checks optional features: a language model, vectors, the history."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from urllib.parse import urlsplit

from signet_sync.admin.doctor.finding import Finding, fine, problem, warning
from signet_sync.admin.doctor.installation import Installation
from signet_sync.embeddings import models, operations, rests
from signet_sync.embeddings import store as embeddings_store
from signet_sync.errors import SignetSyncError, extra_hint
from signet_sync.formats.timestamps import SECOND
from signet_sync.history import repository
from signet_sync.llm import installed, provider_choice, providers
from signet_sync.settings.model import user_file
from signet_sync.settings.model_choice import ModelChoice, resolve_embeddings
from signet_sync.text.phrases import counted


def model(target: Installation) -> list[Finding]:
    """Checks that the configured language model can be called; nothing is sent to it."""
    try:
        provider = provider_choice.provider_for(target.settings, target.root, target.environ)
    except SignetSyncError as error:
        return [warning("language-model", f"none is used: {error.message}", error.hint)]
    if isinstance(provider, providers.CommandProvider) and shutil.which(provider.command[0]) is None:
        words = f"the program {provider.command[0]} does not exist or is not executable"
        return [warning("language-model", words, "name it by its full path in llm.command")]
    if isinstance(provider, providers.NullProvider):
        return [fine("language-model", "none; summaries are made by rules"), *_usable_models(target)]
    return [fine("language-model", provider.name)]


def _usable_models(target: Installation) -> list[Finding]:
    """Names each model of this machine with the settings that turn it on; a person decides."""
    if not installed.is_undecided(target.settings):
        return []
    where = user_file(target.environ)
    return [
        fine("language-model-found", f"{one.name} could be one", "\n".join((f"to use it, add to {where}:", *one.lines)))
        for one in installed.installed_models(target.environ)
    ]


def embeddings(target: Installation) -> list[Finding]:
    """Checks that the configured model can make vectors; says how many there are and what is sent where."""
    try:
        choice = resolve_embeddings(target.settings)
        if choice.kind == "none":
            return [fine("embeddings", f"off ({choice.why}): recall finds by words")]
        models.embedder_for(choice, target.environ)
    except SignetSyncError as error:
        return [warning("embeddings", f"recall finds by words alone: {error.message}", error.hint)]
    words = f"{_destination(choice)}; {_numbers(target)}"
    now_us = int(target.now * SECOND)
    if target.query(lambda database: any(rests.rests(database, one, now_us) for one in (rests.MAKING, rests.ASKING))):
        remedy = f"{target.command('logs intake')}  # says why; it is asked again within a quarter of an hour"
        return [warning("embeddings", f"the model failed a short time ago: {words}", remedy)]
    return [fine("embeddings", words)]


def _destination(choice: ModelChoice) -> str:
    host = urlsplit(choice.endpoint).netloc
    return f"{choice.provider} {choice.model}: texts and queries, without secrets, are sent to {host}"


def _numbers(target: Installation) -> str:
    found = target.query(lambda database: (*embeddings_store.size(database), embeddings_store.left(database)))
    if found is None:
        return "no vectors"
    count, size, left = found
    full = ", which is the most" if count >= operations.MOST else ""
    waiting = f"; {counted(left, 'text')} without" if left else ""
    return f"{counted(count, 'vector')}{full}, {size / 1_000_000:.1f} MB{waiting}"


def history(target: Installation) -> list[Finding]:
    """Checks that the history can be written if it is enabled, without opening the repository."""
    if not target.settings.history_enabled:
        return [fine("history", "off")]
    if find_spec("pygit2") is None:
        return [problem("history", "it is on, but the extra `git` is missing", extra_hint("git"))]
    found = repository.inspect(target.root, target.folder.key)
    if found.state == "unsafe":
        return [problem("history", f"it is not written: {found.reason}", found.hint)]
    if found.state == "ours" or (found.state == "none" and not found.outer):
        return [fine("history", "on")]
    return [warning("history", f"it is not written: {found.reason}", found.hint)]
