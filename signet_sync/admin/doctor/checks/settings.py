"""Checks optional features: a language model, vectors, the history."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from urllib.parse import urlsplit

from signet_sync.admin import meaning_setup
from signet_sync.admin.doctor.installation import Finding, Installation, fine, problem, warning
from signet_sync.embeddings import store
from signet_sync.errors import SignetSyncError, extra_hint
from signet_sync.history import repository
from signet_sync.llm import provider_choice, providers
from signet_sync.settings.model import user_file
from signet_sync.settings.model_choice import resolve_meaning


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
    if not provider_choice.is_undecided(target.settings):
        return []
    where = user_file(target.environ)
    return [
        fine("language-model-found", f"{one.name} could be one", "\n".join((f"to use it, add to {where}:", *one.lines)))
        for one in provider_choice.list_models(target.environ)
    ]


def meaning(target: Installation) -> list[Finding]:
    """Checks that what makes vectors is there, unasked; says how far it is, and what goes where."""
    chosen = target.settings.recall_meaning
    try:
        choice = resolve_meaning(target.settings)
        if choice is None:
            return [fine("meaning", f"{chosen}: recall finds by words")]
        if choice.folder:
            meaning_setup.require_extra()
    except SignetSyncError as error:
        return [warning("meaning", f"recall finds by words alone: {error.message}", error.hint)]
    if choice.folder and (lost := meaning_setup.lost(chosen)):
        remedy = target.command(f"settings recall.meaning {chosen}")
        return [warning("meaning", f"recall finds by words alone: {lost[0].name} is missing or damaged", remedy)]
    where = f"{choice.server.provider} {choice.server.model}: texts and queries, without secrets, are sent to "
    where = f"the model in {choice.folder}" if choice.folder else where + urlsplit(choice.server.endpoint).netloc
    return [fine("meaning", f"{where}; {target.query(store.progress) or 'no vectors'}")]


def history(target: Installation) -> list[Finding]:
    """Checks that the history can be written if it is enabled, without opening the repository."""
    if not target.settings.history_enabled:
        return [fine("history", "off")]
    if find_spec("pygit2") is None:
        return [problem("history", "it is on, but the extra `git` is missing", extra_hint("git"))]
    found = repository.inspect(target.root, target.folder.key)
    if found is None or found.code == "no-repository":
        return [fine("history", "on")]
    make = problem if found.code == "unsafe-repository" else warning
    return [make("history", f"it is not written: {found.message}", found.hint)]
