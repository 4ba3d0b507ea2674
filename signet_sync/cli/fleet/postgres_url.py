"""Reads the URL of a database from the command line; a wrong one is not repeated, for it may hold a password."""

from __future__ import annotations

from typing import Any

import click


class PostgresUrl(click.types.StringParamType):
    """The URL of a PostgreSQL database."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the URL. Raises `click.BadParameter`."""
        if not str(value).startswith(("postgresql://", "postgres://")):
            self.fail("this is no URL of PostgreSQL: write postgresql://host/database", param, ctx)
        return value
