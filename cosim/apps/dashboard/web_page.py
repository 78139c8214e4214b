"""The web page as its server sends it: the client of viser, which hands the token of its address to its socket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from cosim.core.errors import InputError

if TYPE_CHECKING:
    import socket

    import viser
    from websockets.http11 import Response

    from cosim.core.access.handshake import Access

HEAD = b"<head>"
# out of the address bar, into the memory of this tab and of this origin, which has the port in it; cookies have not.
# viser opens its socket in a worker, at the address that the page posts to it
SCRIPT = b"""<script>
(() => {
  const fields = new URLSearchParams(location.search), token = fields.get("token");
  sessionStorage.setItem("token", token);
  fields.delete("token");
  history.replaceState(null, "", location.pathname + (fields.size ? "?" + fields : ""));
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (data, ...more) {
    const opens = data && data.type === "set_server";
    return post.call(this, opens ? { ...data, server: data.server + "/?token=" + token } : data, ...more);
  };
})();
</script>"""


class Look(NamedTuple):
    """The appearance of a page. dark: at the start, until the user switches; frame_rate: pictures of the 3D view per
    second."""

    dark: bool = False
    frame_rate: float = 30.0


class WebAddress(NamedTuple):
    """Where the page is served. allowed: names of this machine besides those that it has by itself."""

    host: str
    port: int
    allowed: Sequence[str] = ()


def check_viser() -> None:
    """Raises InputError where viser is not installed."""
    try:
        import viser  # noqa: F401
    except ImportError:
        raise InputError("the page needs viser; run pip install 'cosim[dash]'", "dash") from None


def open_server(listener: socket.socket, access: Access) -> viser.ViserServer:
    """Raises RunError for a version of viser that cannot be guarded."""
    import rich
    import viser

    from cosim.core.access.guarded_server import guarding

    rich.reconfigure(quiet=True)  # all that viser prints, and nothing of ours
    host, port = listener.getsockname()[:2]
    with guarding(access, listener, with_script):
        return viser.ViserServer(host=host, port=port, verbose=False)


def with_script(response: Response) -> Response:
    """The page with SCRIPT before all others; any other answer as it is."""
    if HEAD in response.body and response.headers.get("Content-Encoding", "identity") == "identity":
        response.body = response.body.replace(HEAD, HEAD + SCRIPT, 1)
        del response.headers["Content-Length"]
        response.headers["Content-Length"] = str(len(response.body))
    return response
