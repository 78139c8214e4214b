"""What is given to be read and is no regular file is refused in one sentence, which names what it is: nothing waits for
the other end of a FIFO."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.kit.command import RIG

LIMIT = 300  # s, for a busy machine; what waits for a FIFO waits for ever
# a file beside the rig: its suffix, and the rig that names it
HELD = RIG.partition("controllers:")[0]
USES = {
    "py": RIG.replace("type: pid, kp: 50, ki: 10, kd: 5", "type: FILE"),
    "urdf": RIG.partition("mechanism:")[0] + "mechanism: {urdf: FILE}\n",
    "xml": RIG.partition("mechanism:")[0] + "mechanism: {mjcf: FILE}\n",
    "fmu": HELD + "parts:\n  - {name: load, fmu: FILE}\n",
    "ssp": HELD + "parts:\n  - {name: load, ssp: FILE}\n",
    "csv": RIG.replace("{type: quintic, goal: 30 deg, duration: 0.5}", "{type: waypoints, file: FILE}"),
    "key": RIG + "telemetry: {control: 'tcp://0.0.0.0:9873', network: true, key: FILE}\n",
}
# what is no file is `given` with the suffix of a kind
COMMANDS = [
    "run given.yaml",
    "run rig.yaml --overlay given.yaml",
    *(f"run uses.yaml # given.{suffix}" for suffix in USES),
]
COMMANDS += ["check given.yaml", "check --eds given.eds", "scenario rig.yaml given.yaml", "emulate given.yaml"]
COMMANDS += ["analyze given.yaml", "analyze rig.yaml --recorded given.mcap", "tune gains given.yaml"]
COMMANDS += [
    "tune feedforward rig.yaml --save a.csv --from given.mcap",
    "identify rig.yaml given.mcap",
    "identify rig.yaml given.csv",
]
COMMANDS += [f"compare given.{suffix} given.{suffix}" for suffix in ("mcap", "npz", "cosim-run")]
COMMANDS += [f"replay given.mcap{words}" for words in ("", " --rerun", " --bus", " --bus --to a.log")]
COMMANDS += ["explain given.mcap", "plot given.mcap", "plot given.npz", "export recording given.mcap --to csv"]
COMMANDS += ["export code rig.yaml --target x86_64 --check given.mcap", "new rig2.yaml given.urdf", "dash given.yaml"]
COMMANDS += ["derive given.urdf --graph", "derive given.yaml --graph", "dash given.mcap"]
COMMANDS += ["live get --connect tcp://127.0.0.1:1 --key given.pub"]


def _too_late(*_):
    raise TimeoutError("it waits")


KINDS = {"a FIFO": os.mkfifo, "a folder": os.mkdir, "a device": lambda path: os.symlink("/dev/zero", path)}
# each way to read a file with a FIFO, and with one of the others
OTHERS = [(words, ("a folder", "a device")[k % 2]) for k, words in enumerate(COMMANDS)]


@pytest.mark.parametrize(("words", "kind"), [*((words, "a FIFO") for words in COMMANDS), *OTHERS])
def test_what_is_no_regular_file_is_refused(command, words, kind):
    words, _, suffix = words.partition(" # given.")
    (name,) = {f"given.{suffix}"} if suffix else {word for word in words.split() if word.startswith("given")}
    KINDS[kind](name)
    if suffix:
        Path("uses.yaml").write_text(USES[suffix].replace("FILE", name))
    before = signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(LIMIT)
    try:
        code, out, err = command(*words.split())
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert (code, out) == (2, ""), err
    assert len(err) == 1 and name in err[0] and f" is {kind}" in f" {err[0]}", err
