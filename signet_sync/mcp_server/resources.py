"""Serves the agent's files as resources: MEMORY.md, artifacts and entity files, by URIs relative to the workspace."""

from __future__ import annotations

from urllib.parse import quote, unquote

from mcp_types import ListResourcesResult, ReadResourceResult, Resource, ResourceTemplate, TextResourceContents

from signet_sync.errors import UsageError
from signet_sync.formats.paths import agent_folder
from signet_sync.mcp_server.dispatch import marked
from signet_sync.mcp_server.memory import ServedMemory
from signet_sync.pages import readable

SCHEME = "signet://"
PAGE = 100  # resources in one list
_LONGEST_URI = 4_000
LARGEST = 100_000  # characters of a file in an answer
_TYPE = "text/markdown"


def uri_of(path: str) -> str:
    """Returns the URI of a path: without a host, so that no part of the path is treated as one and changed."""
    return f"{SCHEME}/{quote(path, safe='/:')}"


def path_of(uri: str) -> str:
    """Returns the path that a URI means, relative to the workspace. Raises `UsageError` (`not-found`)."""
    rest = uri.removeprefix(SCHEME).removeprefix("/")
    if not uri.startswith(SCHEME) or len(uri) > _LONGEST_URI or not rest.isprintable():
        raise UsageError("unknown resource", hint=f"URIs begin with {SCHEME}/", code="not-found")
    return unquote(rest)


def listed(memory: ServedMemory, cursor: str | None) -> ListResourcesResult:
    """Returns a page of the list: MEMORY.md, entity files, artifacts with the newest first. Raises `UsageError`."""
    after = "" if cursor is None else path_of(cursor)
    found = readable.listing(memory.place, memory.agent_id, after, PAGE + 1)
    resources = [
        Resource(uri=uri_of(one.path), name=one.path, title=f"{one.kind}: {one.title}", mime_type=_TYPE)
        for one in found[:PAGE]
    ]
    following = uri_of(found[PAGE - 1].path) if len(found) > PAGE else None
    return ListResourcesResult(resources=resources, next_cursor=following)


def templates(memory: ServedMemory) -> list[ResourceTemplate]:
    """Returns the templates for URIs of artifacts and entity files."""
    entities = f"{agent_folder(memory.agent_id)}entities/{{kind}}/{{folder}}/{{file}}"
    return [
        _template("artifact", "memory/{name}", "A file of a session: see session_open for names."),
        _template("entity file", entities, "An entity's profile or notes: see entity_read for their paths."),
    ]


def _template(name: str, path: str, description: str) -> ResourceTemplate:
    return ResourceTemplate(
        name=name, title=name.capitalize(), uri_template=f"{SCHEME}/{path}", description=description, mime_type=_TYPE
    )


def read(memory: ServedMemory, uri: str) -> ReadResourceResult:
    """Returns a file of the agent, marked as data. Raises `UsageError`, `WorkspaceError`, `DatabaseError`."""
    path = path_of(uri)
    found = readable.read(memory.place, memory.agent_id, path, LARGEST)
    text = found.text
    if not found.whole:
        text += f"\n[Cut here. memory_expand shows other parts; the complete file is {path}.]"
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_TYPE, text=marked(text))])
