"""What a recording or a stream of somebody else brings is neither run nor opened without consent, by any command.

The commands come from the command line: one that is added and takes a recording or an address has no row here, and
fails.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from cosim import load_rig, open_recording
from cosim.apps.dashboard import command as dashboard
from cosim.apps.dashboard.command import Joining, dash
from cosim.apps.dashboard.web_page import Look, WebAddress
from cosim.apps.foxglove.command import FoxgloveAddress, open_bridge
from cosim.cli.command_line import all_commands
from cosim.rig.run import provenance
from cosim.rig.run.stream import republish
from tests.fmi import fmus
from tests.rig.test_user_code import JOINT, MADE, TURN

MARK = "from pathlib import Path\nPath({mark!r}).touch()\n"
CONTROLLER = """
from cosim.plugin import ops
from cosim.plugin import COMMAND, joint_signals, params
@params
class Params:
    pass
class Idle:
    def __init__(self, params, context):
        self.params, self.n = params, len(context.joints)
        self.inputs, self.outputs = joint_signals(("position",), self.n), joint_signals(COMMAND, self.n)
    def initial(self):
        return {}
    def update(self, t, p, x, u):
        return {}, {name: ops.zeros(self.n) for name in COMMAND}
load = Idle
"""
PYTHON = """
mechanism:
  bodies:
    - {name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -30 cm], inertia: [0.01, 0.01, 0.001]}
    - {name: tool, joint: way, parent: link, type: foreign_joint.py, mass: 1 kg, inertia: [0.01, 0.01, 0.01]}
controllers: [{type: foreign_controller.py, joints: [hinge]}]
schedule: {duration: 20 ms}
"""
BENIGN = """
mechanism:
  bodies: [{name: link, joint: hinge, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -30 cm], inertia: [0.01, 0.01, 0.001]}]
joints: {hinge: {actuator: {type: ideal}, initial: {position: 0.3}}}
controllers: [{type: pd_gravity, kp: 10, kd: 1, trajectory: {type: sine, amplitude: 0.2, frequency: 1 Hz}}]
schedule: {duration: 20 ms}
"""
XACRO = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:include filename="{folder}/foreign_part.xacro"/>
<link name="world"/><link name="a"><inertial><mass value="${1 + 1}"/><origin xyz="0.1 0 0"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="world"/><child link="a"/><axis xyz="0 1 0"/></joint></robot>"""
ROBOT = "mechanism: {urdf: foreign_robot.xacro}\nschedule: {duration: 20 ms}\n"
FMU = PYTHON.replace("type: foreign_joint.py, ", "axis: [0, 1, 0], ").partition("controllers")[0] + (
    "parts: [{name: table, fmu: FILE}]\n"
    "couplings: {wires: [{output: mechanism.hinge/velocity, input: table.rate}]}\nschedule: {duration: 20 ms}\n"
)
KINDS = ["python", "xacro", pytest.param("fmu", marks=fmus.needs_gcc)]

# command -> its words: F a recording of somebody else, RIG a rig of this user
VIEWS: dict[str, list[list[str]]] = {
    "plot": [["F", "hinge/position", "-o", "x.png"]],
    "explain": [["F"]],
    "export recording": [["F", "--to", "csv", "-o", "x.csv"]],
    "compare": [["F", "F"]],
    "replay": [["F", "--rerun"], ["F", "--bus"], ["F", "--bus", "RIG"], ["F", "--bus", "--to", "x.log"]],
    "identify": [["RIG", "F"]],
    "tune feedforward": [["RIG", "--from", "F", "--save", "x.csv"]],
    "analyze": [["RIG", "--measure", "chirp", "--recorded", "F"]],
    "export code": [["RIG", "--target", "x86_64", "-o", "out", "--check", "F"]],
    "dash": [],  # below, as foxglove
    "foxglove": [],
}
WORDS = [[*name.split(), *words] for name, lines in VIEWS.items() for words in lines]
# take an address of which they neither get a rig nor a file
NUMBERS_ALONE = {
    "live set": "numbers go to a control socket",
    "live get": "numbers come from a control socket",
    "live stop": "an order goes to a control socket",
    "run": "a broker of HELICS passes numbers on",
    "federate": "a broker of HELICS passes numbers on",
    "tune gains": "workers of this user's own cluster evaluate its rig",
}
OUTPUTS, OWN_ADDRESS = {"record"}, {"host"}
PYTHON_FILES = "foreign_controller.py", "foreign_joint.py"
FOREIGN = (*PYTHON_FILES, "foreign_robot.xacro", "foreign_part.xacro", "turntable2.fmu", "foreign.yaml")

_seen: list[str] | None = None


def _notice(event: str, arguments: tuple) -> None:
    if event == "open" and _seen is not None and isinstance(arguments[0], str | bytes) and "w" not in str(arguments[1]):
        name = os.fsdecode(arguments[0])
        unpacked = os.path.basename(os.path.dirname(name)).startswith("cosim-rig-")
        if os.path.basename(name) in FOREIGN and not unpacked and not (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR):
            _seen.append(name)


sys.addaudithook(_notice)


@contextmanager
def nothing_opened(mark: Path) -> Iterator[None]:
    """No file is opened to be read where a recording names it, and none of its code runs."""
    global _seen
    _seen = []
    try:
        yield
        assert not mark.exists()
        assert _seen == []
    finally:
        _seen = None


class Foreign:
    """Recordings of a rig of each kind, made with another cache folder; the files stand where the recordings name them.
    Recorded once per kind."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder, folder / "mark"
        self._made: dict[str, Path] = {}

    def __call__(self, kind: str) -> Path:
        if kind not in self._made:
            self._made[kind] = self._record(kind)
        return self._made[kind]

    def _record(self, kind: str) -> Path:
        folder = self.folder / kind
        folder.mkdir()
        mark = MARK.format(mark=str(self.mark))
        (folder / "foreign_controller.py").write_text(mark + CONTROLLER)
        (folder / "foreign_joint.py").write_text(mark + JOINT.format(body=f"return {TURN}", made=MADE))
        (folder / "foreign_robot.xacro").write_text(XACRO.replace("{folder}", str(folder)))
        (folder / "foreign_part.xacro").write_text('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"/>')
        text = {"python": PYTHON, "xacro": ROBOT, "fmu": FMU}[kind]
        if kind == "fmu":
            text = text.replace("FILE", fmus.build(folder, "turntable", 2).name)
        (folder / "foreign.yaml").write_text(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COSIM_CACHE_DIR", str(self.folder / "theirs"))
            load_rig(folder / "foreign.yaml").run(record=folder / "foreign.mcap")
        self.mark.unlink(missing_ok=True)
        return folder / "foreign.mcap"


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Foreign:
    return Foreign(tmp_path_factory.mktemp("foreign"))


def test_every_command_that_takes_a_recording_or_an_address_has_its_row() -> None:
    found = set()
    for name, parser in all_commands().parsers.items():
        for action in parser._actions:
            recording = ".mcap" in f"{action.metavar} {action.help}" and action.dest not in OUTPUTS
            address = "ADDRESS" in str(action.metavar) and action.dest not in OWN_ADDRESS
            found |= {name} if recording or address else set()
    assert found == set(VIEWS) | set(NUMBERS_ALONE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_no_command_runs_or_opens_what_a_recording_brings(
    foreign: Foreign, command, words: list[str], kind: str
) -> None:
    recording = foreign(kind)
    Path("rig.yaml").write_text(BENIGN)
    with nothing_opened(foreign.mark):
        code, _, err = command(*({"F": recording, "RIG": "rig.yaml"}.get(word, word) for word in words))
    assert code in (0, 1, 2)
    if "--rerun" in words:
        what = "this code would run and there is no terminal to confirm on"
        assert (code, err) == (2, [f"--trust: {what}; pass --trust if you know where it comes from"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_rig_is_checked_without_its_code(foreign: Foreign, command, kind: str) -> None:
    rig = foreign(kind).with_name("foreign.yaml")
    code, out, err = command("check", rig, "--untrusted")
    assert (code, err, foreign.mark.exists()) == (0, [], False)
    assert out.startswith(f"{rig}: nothing of it was run\n  would run: {rig.parent}/foreign")


def served(monkeypatch: pytest.MonkeyPatch) -> list:
    """The pages of `cosim dash`, which end once they show the mechanism."""
    pages: list = []

    def serve(page, look=lambda: None) -> None:
        pages.append(page)
        for _ in range(400):
            page.update()
            if page.drawing is not None and page.poses is not None:
                break
            threading.Event().wait(0.02)
        page.close()

    monkeypatch.setattr(dashboard, "_serve", serve)
    return pages


@contextmanager
def published(recording: Path, address: str) -> Iterator[None]:
    ended = threading.Event()

    def sleep(seconds: float) -> None:
        if ended.wait(seconds):
            raise EOFError

    def work() -> None:
        with suppress(EOFError):
            republish(open_recording(recording), address, 1e-4, sleep=sleep)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_shows_a_recording_without_its_code(foreign: Foreign, monkeypatch, kind: str) -> None:
    recording, pages = foreign(kind), served(monkeypatch)
    with nothing_opened(foreign.mark):
        dash(str(recording), WebAddress("127.0.0.1", 0), False, 30.0)
    assert pages[0].drawing is not None and pages[0].poses is not None  # also of a joint in Python


def test_a_page_and_a_bridge_show_a_stream_without_its_code(foreign: Foreign, monkeypatch, tmp_path) -> None:
    """What they show is the outline that a stream has of every kind of rig."""
    recording, pages, address = foreign("python"), served(monkeypatch), f"ipc://{tmp_path}/s"
    with published(recording, address), nothing_opened(foreign.mark):
        web = dashboard._listen(WebAddress("127.0.0.1", 0))
        with closing(web.listener):
            dashboard.serve_stream(address, Joining(), web, Look(False, 30.0), print)
        assert pages[0].drawing is not None and pages[0].poses is not None
        with open_bridge(address, FoxgloveAddress("127.0.0.1", 0)) as opened:
            bridge = opened.bridge
            for _ in range(100):
                bridge.step()
                if bridge.began:
                    break
            assert bridge._run is not None and bridge._run._motion is not None and bridge._run.note == ""


def test_consent_runs_it_and_says_first_what(foreign: Foreign, command) -> None:
    recording = foreign("python")
    code, out, err = command("replay", recording, "--rerun", "--trust")
    first, *listed, _, _ = out.splitlines()
    assert first == f"{recording} was not recorded here by you, and has code of its own:"
    assert listed == [f"  {name}: Python that would run" for name in PYTHON_FILES]
    assert (code, err) == (0, []) and foreign.mark.exists()
    foreign.mark.unlink()


def test_a_recording_of_this_user_needs_no_consent_while_its_files_stand(tmp_path, command) -> None:
    (tmp_path / "own.py").write_text(CONTROLLER)
    (tmp_path / "own.yaml").write_text(BENIGN.replace("pd_gravity, kp: 10, kd: 1, trajectory: ", "own.py}]\n#"))
    load_rig(tmp_path / "own.yaml").run(record=tmp_path / "own.mcap")
    code, out, _ = command("replay", "own.mcap", "--rerun")
    assert code == 0 and "has code of its own" not in out
    (tmp_path / "own.py").write_text(CONTROLLER + "\n")
    assert command("replay", "own.mcap", "--rerun")[0] == 2


def test_a_recording_that_hides_real_motors_never_opens_them(tmp_path, command, monkeypatch) -> None:
    """What it states of itself is a simulated rig, the rig in it has a drive on a serial port."""
    (tmp_path / "rig.yaml").write_text(BENIGN)
    drivers = "[{name: bus, type: serial_text, port: {port: PORT}, mode: effort, joints: {hinge: {id: 1}}}]"
    hidden = BENIGN.replace("actuator: {type: ideal}", "limits: {velocity: 1, effort: 1}").replace(
        "schedule:", f"drivers: {drivers}\nschedule:"
    )
    port = tmp_path / "port"
    os.mkfifo(port)

    def attached(rig) -> tuple[tuple[str, bytes], ...]:
        return (("rig.yaml", b""), ("rig.as_run.yaml", hidden.replace("PORT", str(port)).encode()))

    with monkeypatch.context() as forged:
        forged.setattr(provenance, "attachments_of", attached)
        load_rig(tmp_path / "rig.yaml").run(record=tmp_path / "a.mcap")
    for trust in ([], ["--trust"]):
        code, _, err = command("replay", "a.mcap", "--rerun", *trust)
        what = "real motors run in real time; take 'realtime: false' out"
        assert (code, err) == (2, [f"--set schedule.realtime=false: {what}"])
