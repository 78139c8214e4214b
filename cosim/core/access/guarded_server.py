"""A server of pages and WebSockets behind the rule of `handshake`: nothing is answered before it is passed."""

from __future__ import annotations

import html
import http
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import websockets.asyncio.server
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as unguarded
from websockets.datastructures import Headers
from websockets.http11 import Request as HttpRequest
from websockets.http11 import Response

from cosim.core.access.handshake import TOKEN, Access, HandshakeRequest
from cosim.core.errors import InputError, RunError

Answer = Callable[[ServerConnection, HttpRequest], Response | None]
Handler = Callable[[ServerConnection], Awaitable[None]]

# no copies, no frames of other pages around ours (clicks on what is not seen), and the token to nobody
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# the tab that has had the token keeps it, for a reload; no other tab and no page of another origin or port can read it
REFUSED = """<!doctype html><meta charset="utf-8"><title>Refused</title><p>{what}.</p><script>
const token = sessionStorage.getItem("{name}"), tried = new URLSearchParams(location.search).has("{name}");
if (tried) sessionStorage.removeItem("{name}");
else if (token) location.replace("/?{name}=" + token);
</script>"""

# requests contain the token, and what others send here is no matter of ours
_silent = logging.Logger("cosim.core.access")
_silent.addHandler(logging.NullHandler())
_silent.disabled = True


def listening_socket(host: str, port: int) -> socket.socket:
    """Where a server is to listen; port: 0 for any. Raises InputError for what is no port and no host of this machine,
    and for a port that is taken."""
    if not 0 <= port < 2**16:
        raise InputError(f"{port} is no port; give one from 1 to 65535, or 0 for any that is free", "--port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.bind((host, 0))
    except (OSError, TypeError) as error:  # TypeError: what cannot be a name, such as one of too many letters
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        what = f"'{host}' is no name or address of this machine ({reason.partition(' (while')[0]}); give one such as"
        raise InputError(f"{what} 127.0.0.1", "--host") from None
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]
        what = f"port {port} of {host} cannot be opened ({reason}); pass another one, or 0 for any"
        raise InputError(what, "--port") from None


def serve(
    access: Access, listener: socket.socket, handler: Handler, answer: Answer | None = None, **options: Any
) -> unguarded:
    """As `serve` of websockets. answer: to a request that has passed; None goes on with the WebSocket."""

    def guarded(connection: ServerConnection, request: HttpRequest) -> Response | None:
        refused = access.refusal(_stated(connection, request))
        response = _refusal(refused) if refused else None if answer is None else answer(connection, request)
        if response is not None:
            for name, value in HEADERS.items():
                response.headers[name] = value
        return response

    return unguarded(handler, sock=listener, process_request=guarded, logger=_silent, server_header=None, **options)


@contextmanager
def guarding(access: Access, listener: socket.socket, changed: Callable[[Response], Response]) -> Iterator[None]:
    """The server that a library starts with websockets meanwhile is guarded, and listens here instead.

    changed: its answers as they are sent. Raises RunError where the library has started none so; it must be ended then.
    """
    started = list[bool]()

    def instead(handler: Handler, *place: Any, process_request: Answer | None = None, **options: Any) -> Any:
        def answer(connection: ServerConnection, request: HttpRequest) -> Response | None:
            if "Accept-Encoding" in request.headers:
                del request.headers["Accept-Encoding"]  # what is compressed cannot be changed
            response = None if process_request is None else process_request(connection, request)
            return None if response is None else changed(response)

        started.append(True)
        return serve(access, listener, handler, answer, **options)

    websockets.asyncio.server.serve = instead  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        websockets.asyncio.server.serve = unguarded  # type: ignore[misc]
    if not started:
        raise RunError("the server of this version of viser cannot be guarded; install viser 1.1", "dash")


def _stated(connection: ServerConnection, request: HttpRequest) -> HandshakeRequest:
    headers = request.headers
    return HandshakeRequest(
        request.path, headers.get_all("Host"), headers.get_all("Origin"), connection.local_address[0]
    )


def _refusal(what: str) -> Response:
    body = REFUSED.format(what=html.escape(what[0].upper() + what[1:]), name=TOKEN).encode()
    headers = Headers({"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body))})
    return Response(http.HTTPStatus.FORBIDDEN.value, http.HTTPStatus.FORBIDDEN.phrase, headers, body)


def address_of(listener: socket.socket, access: Access, scheme: str) -> str:
    """What a user opens on this machine. A number: `localhost` may be [::1] first, where somebody else can listen."""
    return f"{scheme}://{place_of(listener)}/?{TOKEN}={access.token}"


def place_of(listener: socket.socket) -> str:
    """HOST:PORT of this machine."""
    bound, port = listener.getsockname()[:2]
    host = str({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bound, bound))
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
