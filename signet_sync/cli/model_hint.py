"""Prints which language models of this machine could be used, and the settings for that, where none is set up."""

from __future__ import annotations

import os

import click

from signet_sync.formats.paths import display
from signet_sync.llm import installed
from signet_sync.settings import model


def show_models(root: str) -> None:
    """Prints the programs that PATH names with their settings; nothing if a person has decided, or without any."""
    found = installed.installed_models(os.environ)
    if not found or not installed.is_undecided(model.load(root, anyway=True)[0]):
        return
    told = "rules make the summaries; a language model, which is sent texts of your sessions, is used if you add to"
    click.echo(display(f"{told} {model.user_file()} one of:"))
    for one in found:
        click.echo(f"  # {one.name}")
        for line in one.lines:
            click.echo(f"  {line}")
