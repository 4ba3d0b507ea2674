"""Renders Markdown of the vault as HTML that cannot run: no tag of a file, and links only to pages of ours.

The library escapes all text; nh3 then leaves only the tags and attributes named here. Each line is kept, so that it can
be linked to: markup never extends over the end of its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

# A longer line is shown without markup.
MARKED_UP = 2_000

_TAGS = {"a", "blockquote", "code", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span"}
_TAGS |= {"strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
_ATTRIBUTES = {"*": {"class", "id"}, "a": {"href"}, "ol": {"start"}, "pre": {"tabindex"}}
_WIKILINK = re.compile(r"\[\[([^\[\]|]+)(?:\|([^\[\]]*))?\]\]")
_HANDLE = re.compile(r"(?<!\S)\^([a-z]-[a-z2-7]+)(?!\S)")
_SPECIAL = re.compile(r"[\\`*_\[^]")


_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_AS_BYTES = "surrogateescape"


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """A view and its parameters."""

    view: str
    given: Mapping[str, str]


class Links:
    """The function `url` of templates: `url('session', session=token, page=2)`.

    Parameters of the path are given by name, others become the query; None is left out. `agent` chooses an agent other
    than the one that is shown.
    """

    def __init__(self, paths: Mapping[str, str], agent: str, usual: str) -> None:
        self._paths = paths
        self._agent = agent
        self._usual = usual

    def __contains__(self, name: str) -> bool:
        return name in self._paths

    def __call__(self, name: str, /, **given: object) -> str:
        """Returns the address. Raises `KeyError` for a missing view or parameter."""
        path = _PARAMETER.sub(
            lambda match: quote(str(given.pop(match[1])), safe="", errors=_AS_BYTES), self._paths[name]
        )
        agent = given.pop("agent", self._agent)
        if agent != self._usual and name != "static":
            given["agent"] = agent
        query = urlencode({key: str(value) for key, value in given.items() if value is not None}, errors=_AS_BYTES)
        return f"{path}?{query}" if query else path


class Prose:
    """A parsed text of Markdown, its lines counted from `first`.

    `targets` are the destinations of its links, as written, and the ids of its handles.
    """

    def __init__(self, text: str, first: int = 1, *, inline: bool = False) -> None:
        self.text = text
        self._shown = bool(text.strip())
        self._tokens: list[Token] = []
        if inline:
            self._tokens.append(Token("inline", "", 0, children=_line(text)))
        else:
            self._parse_blocks(text.split("\n"), first)
        inner = [child for token in self._tokens for child in token.children or ()]
        self.targets = {child.meta["target"] for child in inner if child.type == "link_close"}

    def _parse_blocks(self, lines: Sequence[str], first: int) -> None:
        whole = "\n".join(lines) + "\n"
        _markdown.block.parse(whole, _markdown, {}, self._tokens)
        if any(token.level >= _markdown.options.maxNesting - 1 for token in self._tokens):
            # The library leaves out what is nested deeper.
            self._tokens[:] = [Token("fence", "code", 0, content=whole, map=[-1, len(lines)])]
        for before, token in zip([None, *self._tokens], self._tokens, strict=False):
            start, end = token.map or (0, 0)
            if token.type in ("tr_open", "hr"):
                token.attrs["id"] = f"L{first + start}"
            elif token.type in ("heading_open", "heading_close"):
                token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"  # below those of the page
            elif token.type == "fence":
                token.type, token.content = "html_block", _code(token, first + start + 1)
            elif token.type == "inline" and before is not None and before.tag in ("td", "th"):
                token.children = _line(token.content)
            elif token.type == "inline":
                held = token.content.split("\n")
                # Blanks that only Python treats as such may be stripped from the beginning, with their lines.
                start = next((line for line in range(start, end) if held[0] in lines[line]), start)
                token.children = []
                for number, text in enumerate(held, first + start):
                    opened, closed = _raw(f'<span class="line" id="L{number}">'), _raw("</span>")
                    token.children += [opened, *_line(text), closed]

    def __bool__(self) -> bool:
        return self._shown

    def html(
        self, url: Links, links: Mapping[str, LinkTarget] | None = None, mark: str = "L", asked: int | None = None
    ) -> Markup:
        """Returns HTML in which links have the addresses of `links`, if any; others are text.

        Anchors of lines begin with `mark`; the line that is asked for contains the place `here`.
        """
        addresses = {name: url(to.view, **to.given) for name, to in (links or {}).items() if to.view in url}
        html = str(_markdown.renderer.render(self._tokens, _markdown.options, {"addresses": addresses}))
        # No text of a file contains an unescaped quotation mark.
        if asked:
            html = html.replace(f'id="L{asked}">', f'id="L{asked}"><span id="here"></span>')
        html = html.replace(' id="L', f' id="{mark}')
        return Markup(nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes=set(), link_rel=None))  # noqa: S704


def _raw(html: str) -> Token:
    return Token("html_inline", "", 0, content=html)


def _line(text: str) -> list[Token]:
    """Returns the pieces of one line; the end of a link has its target and its words."""
    if len(text) > MARKED_UP or not _SPECIAL.search(text):
        return [Token("text", "", 0, content=text)]
    tokens: list[Token] = []
    _markdown.inline.parse(text, _markdown, {}, tokens)
    target, words = "", ""
    for token in tokens:
        if token.type == "text_special":
            token.type = "text"  # an escaped sign, for which only a rule that is not used here would know what to do
        if token.type == "link_open":
            target, words = str(token.attrs["href"]), ""
        elif token.type == "link_close":
            token.meta = {"target": target, "words": words}
        words += token.content
    return tokens


def _code(token: Token, first: int) -> str:
    """Returns a block of code; its lines keep their ends, so that they are copied as written."""
    held = token.content.split("\n")[:-1]
    lines = "".join(
        f'<span class="line" id="L{number}">{escapeHtml(text)}\n</span>' for number, text in enumerate(held, first)
    )
    label, code = escapeHtml(token.info.strip()), f'<pre tabindex="0"><code>{lines}</code></pre>'
    return f'<p class="label">{label}</p>{code}' if label else code


class _Markdown(MarkdownIt):
    """Keeps links as written: the page decides which of them have a target."""

    def normalizeLink(self, url: str) -> str:
        return url

    def validateLink(self, url: str) -> bool:
        return True


def _wikilink(state: StateInline, silent: bool) -> bool:
    found = _WIKILINK.match(state.src, state.pos, state.posMax)
    return found is not None and _push_link(state, silent, found, found[2] or found[1])


def _handle(state: StateInline, silent: bool) -> bool:
    found = _HANDLE.match(state.src, state.pos, state.posMax)
    return found is not None and _push_link(state, silent, found, found[0])


def _push_link(state: StateInline, silent: bool, found: re.Match[str], words: str) -> bool:
    if not silent:
        state.push("link_open", "a", 1).attrs = {"href": found[1]}
        state.push("text", "", 0).content = words
        state.push("link_close", "a", -1)
    state.pos = found.end()
    return True


def _link_open(_: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    address = env["addresses"].get(tokens[at].attrs["href"])
    return f'<a href="{escapeHtml(address)}">' if address else ""


def _link_close(_: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    target, words = tokens[at].meta["target"], tokens[at].meta["words"]
    if target in env["addresses"]:
        return "</a>"
    return "" if words in (target, f"^{target}") else f' <span class="target">({escapeHtml(target)})</span>'


_markdown = _Markdown("zero", {"html": False, "maxNesting": 20}).enable(
    ["blockquote", "fence", "heading", "hr", "list", "table", "backticks", "emphasis", "escape", "link"]
)
_markdown.inline.ruler.before("link", "wikilink", _wikilink)
_markdown.inline.ruler.before("link", "handle", _handle)
_markdown.add_render_rule("link_open", _link_open)
_markdown.add_render_rule("link_close", _link_close)
