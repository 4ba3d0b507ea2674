"""Edits TOML documents of other programs with `tomlkit`, which is imported only for that; parses with `tomllib`."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from signet_sync.host.harness_settings.settings_text import SettingsText, Way, unusable
from signet_sync.settings.model import DOTS_LIMIT

if TYPE_CHECKING:
    from tomlkit.container import Container

_CUT = "\0"  # no TOML document contains it


class TomlText(SettingsText):
    """A TOML document. A new table goes to its end, after a blank line; a comment before a table stays with that."""

    def parsed(self, text: str) -> dict[str, Any]:
        """Parses the document. Raises `ConfigError` with line and remedy."""
        try:
            # tomllib needs minutes for a key of some ten thousand parts, and numbers may be too long for Python.
            if any(line.count(".") > DOTS_LIMIT for line in text.split("\n") if "[" in line or "=" in line):
                raise ValueError("a key is nested too deeply")
            return tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise unusable(self.path, f"{error}") from error

    def with_value(self, way: Way, value: Any) -> str:
        """Returns the document with a value put there."""
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        text = self.text or ""
        newline = "\r\n" if "\r\n" in text else "\n"
        if isinstance(value, dict) and self.at(way) is None:
            for step in reversed(way):
                value = {step: value}
            gap = newline if text.endswith("\n") else newline * 2 if text else ""
            return text + gap + tomlkit.dumps(value).replace("\n", newline)
        try:
            document = tomlkit.parse(text)
            table: Any = document
            for step in way[:-1]:
                table = table[step]
            table[way[-1]] = value
            return document.as_string()
        except (TOMLKitError, KeyError, TypeError, RecursionError) as error:
            raise self._unsafe(way) from error

    def without_value(self, way: Way) -> str:
        """Returns the document without a value; of a table without all of its parts, wherever they stand."""
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        text = self.text or ""
        try:
            while True:
                document = tomlkit.parse(text)
                if not _cut(document, way):
                    return text
                # Written again, a document is as it was, so that what is missing in it is what was cut.
                head, _, rest = document.as_string().partition(_CUT)
                lines = text[len(head) : len(text) - len(rest)].splitlines(keepends=True)
                while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
                    rest = lines.pop() + rest  # blank lines and comments belong to what comes after them
                if not rest or rest[0] in "\r\n":
                    head = re.sub(r"(\A|\n)\r?\n\Z", r"\1", head)  # the blank line before it
                if len(head) + len(rest) >= len(text):
                    raise self._unsafe(way)
                text = head + rest
        except (TOMLKitError, RecursionError) as error:
            raise self._unsafe(way) from error


def _cut(container: Container, way: Way) -> bool:
    """Puts a mark in place of the first part of what is there; returns whether there was any."""
    from tomlkit.items import InlineTable, Table, Whitespace

    for index, (key, item) in enumerate(container.body):
        if key is None or key.key != way[0]:
            continue
        if len(way) == 1:
            container.body[index] = (None, Whitespace(_CUT))
            return True
        if isinstance(item, Table | InlineTable) and _cut(item.value, way[1:]):
            return True
    return False
