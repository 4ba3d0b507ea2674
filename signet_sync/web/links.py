"""Builds addresses of the page's own views, by name, for the agent that is shown."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, urlencode

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


class LinkTarget(NamedTuple):
    """A view and its parameters."""

    view: str
    given: Mapping[str, str]


class Links:
    """The function `url` of templates: `url('session', session=token, page=2)`.

    Parameters of the path are given by name, others become the query; None is left out. `agent` chooses an agent other
    than
    the one that is shown.
    """

    def __init__(self, paths: Mapping[str, str], agent: str, usual: str) -> None:
        self._paths = paths
        self._agent = agent
        self._usual = usual

    def __contains__(self, name: str) -> bool:
        return name in self._paths

    def __call__(self, name: str, /, **given: object) -> str:
        """Returns the address. Raises `KeyError` for a missing view or parameter."""
        path = _PARAMETER.sub(lambda match: quote(str(given.pop(match[1])), safe="", errors=_ERRORS), self._paths[name])
        agent = given.pop("agent", self._agent)
        if agent != self._usual and name != "static":
            given["agent"] = agent
        query = urlencode({key: str(value) for key, value in given.items() if value is not None}, errors=_ERRORS)
        return f"{path}?{query}" if query else path


_ERRORS = "surrogateescape"
