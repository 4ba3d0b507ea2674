"""Restricts the page to browsers of this machine with the token, and sets the security headers of every answer."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from signet_sync.web import formatting

TOKEN = "token"  # noqa: S105 - what the parameter is called
_CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with `no-referrer` a browser hides from us, too, where a form comes from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-DNS-Prefetch-Control": "off",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_METHODS = ("GET", "HEAD")
FORMS = "/do/"  # the path below which forms are accepted
_FORM = "application/x-www-form-urlencoded"
_WAY_IN = "Open the complete address that signet-sync ui printed, or start signet-sync ui again."
_AS_BYTES = "surrogateescape"


@dataclass(slots=True)
class Keys:
    """What opens the page: the token of its address, the one-time token for starting a browser, the cookie.

    Every user of the machine can read a program's arguments, so the token with which a browser is started works once.
    Cookies are not separated by port, so the cookie is none of the tokens.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    once: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    def open(self, given: str) -> bool:
        """Returns whether a token opens the page; the one-time token is used up by that."""
        if self.once and _same(given, self.once):
            self.once = ""
            return True
        return _same(given, self.token)

    def is_ours(self, given: str) -> bool:
        """Returns whether a cookie is ours."""
        return _same(given, self.cookie)


class BrowserGuard:
    """Refuses requests without access, and puts the same headers on every answer."""

    def __init__(self, page: ASGIApp, keys: Keys, port: int, *, read_only: bool) -> None:
        self._page = page
        self._read_only = read_only
        self._keys = keys
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._cookie = f"signet-sync-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or passes it on."""
        if scope["type"] == "http":
            answer = self._judge(_Request(scope)) or self._page
            await answer(scope, receive, _add_headers(send))

    def _judge(self, request: _Request) -> HTMLResponse | None:
        """Returns the answer to a request that is not passed on, else None."""
        is_form = request.method == "POST" and request.path.startswith(FORMS) and not self._read_only
        if request.method not in _METHODS and not is_form:
            return _refusal(405, "This page is read-only.", {"Allow": ", ".join(_METHODS)})
        host = request.only("host")
        # An invalid path could redirect from our own address to a foreign host.
        if host is None or host not in self._hosts or not request.path.startswith("/"):
            return _refusal(403, "This page is served at its own address only.")
        if request.only("origin") not in ("", *(f"http://{one}" for one in self._hosts)):
            return _refusal(403, "The request came from another page.")
        if is_form:
            return self._judge_form(request, host)
        given = request.token()
        if given is not None and self._keys.open(given):
            if request.is_ours or request.is_visit:
                return self._let_in(request, host)
        elif any(map(self._keys.is_ours, request.values_of(self._cookie))) and request.is_ours:
            return None
        return _refusal(403, "This page needs the token of its address.", hint=_WAY_IN)

    def _judge_form(self, request: _Request, host: str) -> HTMLResponse | None:
        """Does the same for a form, which only a page of ours at this address may send, and only with the cookie."""
        if request.only("origin") != f"http://{host}" or request.only("sec-fetch-site") not in ("", "same-origin"):
            return _refusal(403, "The request came from another page.")
        if not any(map(self._keys.is_ours, request.values_of(self._cookie))):
            return _refusal(403, "This page needs the token of its address.", hint=_WAY_IN)
        if (request.only("content-type") or "").partition(";")[0].strip().lower() != _FORM:
            return _refusal(415, "This is not a form of this page.")
        return None

    def _let_in(self, request: _Request, host: str) -> HTMLResponse:
        """Returns the cookie for the token, with a redirect to the same page without it.

        A strict cookie is not sent after a redirect if the visit began on another site: then a page of ours redirects.
        """
        place = f"http://{host}{request.path_without_token()}"
        headers = {"Set-Cookie": f"{self._cookie}={self._keys.cookie}; HttpOnly; SameSite=Strict; Path=/"}
        if request.is_ours:
            return HTMLResponse(status_code=303, headers=headers | {"Location": place})
        body = f'<meta http-equiv="refresh" content="0; url={formatting.escape(place)}">'
        return HTMLResponse(formatting.plain_page([], head=body), headers=headers)


class _Request(Request):
    """The parts of a request that the guard checks."""

    @property
    def path(self) -> str:
        """Returns the path as it came."""
        return str(self.scope["path"])

    def only(self, name: str) -> str | None:
        """Returns the only value of a header, empty without one; None if there are two, since either could count."""
        found = self.headers.getlist(name) or [""]
        return found[0] if len(found) == 1 else None

    @property
    def is_ours(self) -> bool:
        """Returns whether a person or one of our own pages made the request, according to the browser."""
        return self.only("sec-fetch-site") in ("", "none", "same-origin")

    @property
    def is_visit(self) -> bool:
        """Returns whether a person followed a link from another site; images, frames and scripts do not count."""
        return (self.only("sec-fetch-mode"), self.only("sec-fetch-dest")) == ("navigate", "document")

    def token(self) -> str | None:
        """Returns the token of the address; None without one."""
        return next((value for name, value in query_of(self.scope) if name == TOKEN), None)

    def path_without_token(self) -> str:
        """Returns path and query as they came, without the token."""
        path = quote(self.path, safe="/")
        query = urlencode([(name, value) for name, value in query_of(self.scope) if name != TOKEN], errors=_AS_BYTES)
        return f"{path}?{query}" if query else path

    def values_of(self, name: str) -> Iterator[str]:
        """Yields the values of a cookie: servers on other ports can set one of our name, and malformed ones."""
        for header in self.headers.getlist("cookie"):
            for pair in header.split(";"):
                given, _, value = pair.strip().partition("=")
                if given == name:
                    yield value


def query_of(scope: Scope) -> list[tuple[str, str]]:
    """Parses the query of a request; names of files in it may contain bytes that are not UTF-8, which are kept."""
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, errors=_AS_BYTES)


def _same(given: str, ours: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), ours.encode())


def _refusal(status: int, message: str, headers: Mapping[str, str] | None = None, *, hint: str = "") -> HTMLResponse:
    return HTMLResponse(formatting.plain_page([message, hint]), status, headers)


def _add_headers(send: Send) -> Send:
    """Puts our headers on an answer; the answer itself decides about caching."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return send_with_headers
