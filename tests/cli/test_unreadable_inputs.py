"""What is given to be read and is no regular file is refused in one sentence, which names what it is: nothing waits for
the other end of a FIFO."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.kit.command import RIG

LIMIT = 30  # s, for a busy machine; what waits for a FIFO waits for ever
# FILE: what is no file; the suffix that it has there
COMMANDS = {
    "run FILE": ".yaml",
    "run rig.yaml --overlay FILE": ".yaml",
    "run uses_module.yaml": ".py",
    "run uses_robot.yaml": ".urdf",
    "run uses_mjcf.yaml": ".xml",
    "run uses_fmu.yaml": ".fmu",
    "run uses_system.yaml": ".ssp",
    "run uses_table.yaml": ".csv",
    "run uses_key.yaml": ".key",
    "check FILE": ".yaml",
    "check --eds FILE": ".eds",
    "scenario rig.yaml FILE": ".yaml",
    "emulate FILE": ".yaml",
    "analyze FILE": ".yaml",
    "analyze rig.yaml --recorded FILE": ".mcap",
    "tune FILE": ".yaml",
    "learn rig.yaml --save a.csv --from FILE": ".mcap",
    "identify rig.yaml FILE": ".mcap",
    "identify rig.yaml FILE ": ".csv",
    "compare FILE FILE": ".mcap",
    "compare FILE FILE ": ".npz",
    "compare FILE FILE  ": ".cosim-run",
    "replay FILE --rerun": ".mcap",
    "replay FILE --bus": ".mcap",
    "replay FILE --bus --to a.log": ".mcap",
    "replay FILE": ".mcap",
    "explain FILE": ".mcap",
    "plot FILE": ".mcap",
    "plot FILE ": ".npz",
    "export FILE --to csv": ".mcap",
    "build rig.yaml --target x86_64 --check FILE": ".mcap",
    "new rig2.yaml FILE": ".urdf",
    "derive FILE --graph": ".urdf",
    "derive FILE --graph ": ".yaml",
    "dash FILE": ".yaml",
    "dash FILE ": ".mcap",
    "get --connect tcp://127.0.0.1:1 --key FILE": ".pub",
}
HELD = RIG.partition("controllers:")[0]
USES = {
    "module": RIG.replace("type: pid, kp: 50, ki: 10, kd: 5", "type: FILE"),
    "robot": RIG.partition("mechanism:")[0] + "mechanism: {urdf: FILE}\n",
    "mjcf": RIG.partition("mechanism:")[0] + "mechanism: {mjcf: FILE}\n",
    "fmu": HELD + "parts:\n  - {name: load, fmu: FILE}\n",
    "system": HELD + "parts:\n  - {name: load, ssp: FILE}\n",
    "table": RIG.replace("{type: quintic, goal: 30 deg, duration: 0.5}", "{type: waypoints, file: FILE}"),
    "key": RIG + "telemetry: {control: 'tcp://0.0.0.0:9873', network: true, key: FILE}\n",
}


def _too_late(*_):
    raise TimeoutError("it waits")


@pytest.mark.parametrize("kind", ["a FIFO", "a folder", "a device"])
@pytest.mark.parametrize("words", COMMANDS)
def test_what_is_no_regular_file_is_refused(command, words, kind):
    name = f"given{COMMANDS[words]}"
    {"a FIFO": os.mkfifo, "a folder": os.mkdir, "a device": lambda path: os.symlink("/dev/zero", path)}[kind](name)
    for use, text in USES.items():
        Path(f"uses_{use}.yaml").write_text(text.replace("FILE", name))
    before = signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(LIMIT)
    try:
        code, out, err = command(*words.replace("FILE", name).split())
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert (code, out) == (2, ""), err
    assert len(err) == 1 and name in err[0] and f" is {kind}" in f" {err[0]}", err
