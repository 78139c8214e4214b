"""The command `cosim dash`: what it is given, and the server of the page."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING

from cosim.dashboard.look import Look
from cosim.errors import CosimError, InputError

if TYPE_CHECKING:
    import viser

    from cosim.dashboard.page import Page
    from cosim.dashboard.watch import Watch

WAIT = 0.02  # s


def dash(source: str, host: str, port: int, dark: bool, frame_rate: float) -> None:
    """Serve the page of a recording, or of a run whose stream has this address, until Ctrl-C.

    frame_rate [Hz]: of the 3D view. Raises InputError for a port in use, for what is neither, and where viser is not
    installed.
    """
    check_port(host, port)
    if not frame_rate > 0.0:
        raise InputError(f"{frame_rate:g} is no rate; give one above 0, such as 30", "--frame-rate")
    serve = serve_stream if "://" in source else serve_recording
    serve(source, host, port, Look(dark, frame_rate), partial(print, flush=True))


def serve_stream(address: str, host: str, port: int, look: Look, say: Callable[[str], None]) -> None:
    from cosim.dashboard.watch import Watch

    watch = Watch(address)
    server = open_server(host, port)
    from cosim.dashboard.page import Page

    page = Page(server, watch, look)
    threading.Thread(target=_show_watched, args=(page, watch, say), daemon=True).start()
    say(f"{address}: open http://{_shown(host)}:{server.get_port()} in a browser; Ctrl-C ends")
    _serve(page)


def _show_watched(page: Page, watch: Watch, say: Callable[[str], None]) -> None:
    """Once it is known which rig it is."""
    while watch.about is None:
        time.sleep(WAIT)
    _show_mechanism(page, watch.about.path, say)


def serve_recording(path: str, host: str, port: int, look: Look, say: Callable[[str], None]) -> None:
    from cosim import load_run
    from cosim.dashboard.replay import Replay

    replay = Replay(load_run(path))
    server = open_server(host, port)
    from cosim.dashboard.page import Page

    page = Page(server, replay, look)
    page.update()
    threading.Thread(target=_show_mechanism, args=(page, replay.about.path, say), daemon=True).start()
    say(f"{replay.about.name}: open http://{_shown(host)}:{server.get_port()} in a browser; Ctrl-C ends")
    _serve(page)


def _show_mechanism(page: Page, path: str, say: Callable[[str], None]) -> None:
    try:
        show_rig(page, path)
    except CosimError as error:
        say(f"warning: the mechanism is not shown: {error}")


def show_rig(page: Page, path: str) -> None:
    """The scene of the rig of a file, and its model for the motion. Raises InputErrors."""
    from cosim.rig.rig import load_rig
    from cosim.rig.scene import scene_of_rig

    rig = load_rig(path)
    page.draw(scene_of_rig(rig))
    page.model = rig.plant.model


def _serve(page: Page) -> None:
    try:
        page.run()
    except KeyboardInterrupt:
        pass
    finally:
        page.source.close()
        page.server.stop()


def check_port(host: str, port: int) -> None:
    """Raises InputError if the port cannot be opened."""
    if not 0 <= port < 2**16:
        raise InputError(f"{port} is no port; give one from 1 to 65535, or 0 for any that is free", "--port")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            what = f"port {port} of {host} cannot be opened ({error.strerror}); pass another one, or 0 for any"
            raise InputError(what, "--port") from None


def open_server(host: str, port: int) -> viser.ViserServer:
    """Raises InputError if viser is not installed."""
    try:
        import viser
    except ImportError:
        raise InputError("the page needs viser; run pip install 'cosim[dash]'", "dash") from None
    if port == 0:
        with socket.socket() as probe:
            probe.bind((host, 0))
            port = probe.getsockname()[1]
    with redirect_stdout(io.StringIO()):  # its banner
        return viser.ViserServer(host=host, port=port, verbose=False)


def _shown(host: str) -> str:
    return "localhost" if host in ("127.0.0.1", "0.0.0.0") else host
