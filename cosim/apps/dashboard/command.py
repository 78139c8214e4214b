"""The command `cosim dash`: what it is given, and the server of the page."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cosim.apps.dashboard.web_page import Look, WebAddress, check_viser, open_server
from cosim.core.access.binding import check_address
from cosim.core.errors import CosimError, InputError, InputErrors, RunError
from cosim.core.paths import irregular

if TYPE_CHECKING:
    import socket

    from cosim.apps.dashboard.launch import RunProcess
    from cosim.apps.dashboard.page import Page
    from cosim.apps.dashboard.watch import Watch
    from cosim.core.access.handshake import Access
    from cosim.output.view3d.drawing import Drawing
    from cosim.rig.reading.yaml_source import Override

POLL_PERIOD = 0.02  # s between looks at a stream
ANSWER_TIMEOUT = 2.0  # s, after which it is stated that nothing is published
RIGS = (".yaml", ".yml")
Say = Callable[[str], None]


class RigChoice(NamedTuple):
    """What of a rig is run. overrides, duration, record: as of `cosim run`."""

    overrides: Sequence[Override] = ()
    duration: str | None = None
    record: Path | None = None

    @property
    def words(self) -> list[str]:
        """Of `cosim run`."""
        texts = [item if isinstance(item, str) else item[0] for item in self.overrides]
        words = [word for text in texts for word in ("--set", text)]
        return words if self.duration is None else [*words, "--duration", self.duration]

    def refuse(self, source: str) -> None:
        """Raises InputError for what `source`, which is not run by the page, has no use for."""
        given = {"--set": self.overrides, "--duration": self.duration, "--record": self.record}
        for option, value in given.items():
            if value:
                raise InputError(f"{source} is no rig that the page runs; take the option out", option)


class Joining(NamedTuple):
    """How a run is joined. control: address of its control socket, by default from its stream's schema; key: file
    with the public key of both."""

    control: str | None = None
    key: str | None = None

    def refuse(self, source: str) -> None:
        """Raises InputError for what `source`, a rig that the page runs, has no use for."""
        for option, value in (("--control", self.control), ("--key", self.key)):
            if value:
                raise InputError(f"{source} is run by the page, at addresses of its own; take the option out", option)


ALL_OF_RIG, AS_STREAMED = RigChoice(), Joining()


class Web(NamedTuple):
    """The socket of the page, and who may open it."""

    listener: socket.socket
    access: Access

    def tell(self, what: str, say: Say) -> None:
        from cosim.core.access.curve import is_local
        from cosim.core.access.guarded_server import address_of, place_of

        place, url = place_of(self.listener), address_of(self.listener, self.access, "http")
        say(f"{what}: open {url} (nothing less opens {place} in a browser); Ctrl-C ends")
        if not is_local(f"tcp://{self.listener.getsockname()[0]}:1"):
            say("warning: the network can reach this page, and HTTP is not encrypted; a tunnel of ssh is safer")


def dash(
    source: str,
    at: WebAddress,
    dark: bool,
    frame_rate: float,
    choice: RigChoice = ALL_OF_RIG,
    joining: Joining = AS_STREAMED,
) -> None:
    """Serve a page until Ctrl-C: of a rig, which it runs, of a run whose stream has this address, or of a recording.

    frame_rate [Hz]: of the 3D view. Raises InputError for a port in use, for what is none of them, where viser is not
    installed, and for a rig that does not run.
    """
    if not frame_rate > 0.0:
        raise InputError(f"{frame_rate:g} is no rate; give one above 0, such as 30", "--frame-rate")
    if source.endswith(RIGS):
        joining.refuse(source)
    else:
        choice.refuse(source)
        check_address(source)
    look, say = Look(dark, frame_rate), partial(print, flush=True)
    check_viser()
    web = _listen(at)
    with closing(web.listener):
        if "://" in source:
            serve_stream(source, joining, web, look, say)
        elif source.endswith(RIGS):
            serve_rig(source, choice, web, look, say)
        else:
            serve_recording(source, web, look, say)


def _listen(at: WebAddress) -> Web:
    """Raises InputError for a port in use, and for what is no name in `at`."""
    from cosim.core.access.guarded_server import listening_socket
    from cosim.core.access.handshake import access_of

    access = access_of(at.allowed)
    return Web(listening_socket(at.host, at.port), access)


def serve_rig(path: str, choice: RigChoice, web: Web, look: Look, say: Say) -> None:
    """The run is a child process: it compiles while the page opens. Raises its error if it does not come up."""
    from cosim.apps.dashboard.launch import RunProcess

    if kind := irregular(path):
        raise InputError(f"is {kind}; give the file of a rig", path)
    if not Path(path).is_file():
        raise InputError("no such file; check the path", path)
    process = RunProcess(path, choice.words, choice.record)
    process.start()
    try:
        from cosim.apps.dashboard.live import LiveRun
        from cosim.apps.dashboard.run_control import RunControl
        from cosim.apps.dashboard.watch import Watch

        live = LiveRun(Watch(process.stream), RunControl(), process, process.control)
    except BaseException:
        process.close()
        raise
    try:
        server = open_server(*web)
        _check_first(process)
        web.tell(path, say)
        from cosim.apps.dashboard.page import Page

        page = Page(server, live, look)
    except BaseException:
        live.close()
        raise
    threading.Thread(target=_show, args=(page, lambda: _of_rig(path, choice.overrides), say), daemon=True).start()
    _serve(page, lambda: not live.began and _check_first(process))


def _check_first(process: RunProcess) -> None:
    """Raises the error of a rig that does not run, which ends the page."""
    if (outcome := process.outcome) is None or outcome.code <= 0:
        return
    if outcome.code == 2:
        raise InputErrors(map(InputError, outcome.error.splitlines()))
    raise RunError(outcome.reason)


def serve_stream(address: str, joining: Joining, web: Web, look: Look, say: Say) -> None:
    from cosim.apps.dashboard.live import LiveRun
    from cosim.apps.dashboard.run_control import RunControl
    from cosim.apps.dashboard.watch import Watch

    if joining.control is not None:
        check_control_address(joining.control, joining.key)
    watch = Watch(address, key=joining.key)
    live = LiveRun(watch, RunControl(joining.key), address=joining.control)
    try:
        server = open_server(*web)
        from cosim.apps.dashboard.page import Page

        page = Page(server, live, look)
    except BaseException:
        live.close()
        raise
    threading.Thread(target=_show_watched, args=(page, watch, say), daemon=True).start()
    web.tell(address, say)
    _serve(page)


def check_control_address(address: str, key: str | None) -> None:
    """Raises InputError for what is no address or no key. Nothing need answer yet."""
    from cosim.output.client.control import ControlClient

    ControlClient(address, key=key).close()


def _show_watched(page: Page, watch: Watch, say: Say) -> None:
    """Once it is known which rig it is."""
    until, announced = time.monotonic() + ANSWER_TIMEOUT, False
    while watch.about is None:
        time.sleep(POLL_PERIOD)
        if not announced and time.monotonic() > until:
            say(f"warning: {watch.address}: nothing is published there; the page waits for a run")
            announced = True
    drawing = watch.about.drawing
    _show(page, lambda: _of_text(drawing, watch.address), say)


def serve_recording(path: str, web: Web, look: Look, say: Say) -> None:
    from cosim.apps.dashboard.replay import Replay
    from cosim.rig.run.run import load_run

    replay = Replay(load_run(path))
    server = open_server(*web)
    from cosim.apps.dashboard.page import Page

    page = Page(server, replay, look)
    page.update()
    _show(page, lambda: _of_text(replay.about.drawing, path), say)
    web.tell(replay.about.name, say)
    _serve(page)


def _show(page: Page, find: Callable[[], Drawing], say: Say) -> None:
    try:
        drawing = find()
        page.draw(drawing)
        for note in drawing.scene.notes:
            say(f"warning: the mechanism in 3D: {note}")
    except CosimError as error:
        if not page.closed:
            say(f"warning: the mechanism is not shown: {error}")


def _of_rig(path: str, overrides: Sequence[Override]) -> Drawing:
    """The mechanism of the rig of a file. Raises InputErrors."""
    from cosim.rig.rig import load_rig
    from cosim.rig.scene import drawing_of

    return drawing_of(load_rig(path, overrides))


def _of_text(drawing: str, place: str) -> Drawing:
    """The mechanism that a recording or a stream came with. Raises InputError where there is none."""
    from cosim.output.view3d.drawing import read_drawing

    return read_drawing(drawing, place)


def _serve(page: Page, look: Callable[[], object] = lambda: None) -> None:
    """look: called with each update; it may raise an error, which ends the page."""
    try:
        page.run(look)
    except KeyboardInterrupt:
        pass
    finally:
        page.close()
