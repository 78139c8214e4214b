"""What a controller may do to end the process of its run: the run ends with exit code 1 and one sentence, and keeps its
recording."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cosim import open_recording
from cosim.core.compile.process_exits import ProcessExit, refuse_exits, user_code
from cosim.core.errors import PACKAGE
from cosim.execution.crash import FIX, WHAT
from tests.kit.command import RIG, command
from tests.kit.processes import until

__all__ = ["command"]
OWN = """\
import ctypes, os, signal, sys, threading
from os import _exit
import numpy as np
from cosim.plugin import COMMAND, FEEDBACK, joint_signals, params

@params
class Params:
    pass

def load(params, context):
    {load}
    return Own(params)

class Own:
    outputs = joint_signals(COMMAND, 1)
    inputs = joint_signals(FEEDBACK, 1)
    calls = 0

    def __init__(self, params):
        self.params = params

    def initial(self):
        return {{}}

    def update(self, t, p, x, u):
        if float(u["position"][0]) < 9.0 and t >= {begin}:
            {update}
        return {{}}, dict.fromkeys(COMMAND, np.zeros(1))
"""
LINE = next(number for number, line in enumerate(OWN.splitlines(), 1) if "{update}" in line)
OWN_RIG = re.sub(r"\{name: hold.*\n", "{name: own, type: own.py}\n", RIG)


def write(update="pass", load="pass", folder=".", begin=0.05):
    """begin [s]: from when on the update is made."""
    Path(folder, "own.py").write_text(OWN.format(update=update, load=load, begin=begin))
    Path(folder, "own.yaml").write_text(OWN_RIG)


ENDS = {
    "os._exit(0)": "os._exit(0)",
    "_exit(3)": "os._exit(3)",
    "os.abort()": "os.abort()",
    "os.execlp('true', 'true')": "os.exec of 'true'",
    "os.kill(os.getpid(), signal.SIGKILL)": "the signal SIGKILL to the own process",
    "os.kill(0, signal.SIGKILL)": "the signal SIGKILL to the own process",
    "os.killpg(0, 9)": "the signal SIGKILL to the own process",
    "signal.raise_signal(signal.SIGUSR1)": "the signal SIGUSR1 to the own process",
    "signal.pthread_kill(threading.get_ident(), 11)": "the signal SIGSEGV to the own process",
}


@pytest.mark.parametrize("end", ENDS)
def test_functions_that_end_the_process_raise_in_code_of_a_user(end):
    refuse_exits()
    given = {"users": f"import os, signal, threading\nfrom os import _exit\n{end}"}
    called_by_the_run = compile("exec(users)", str(PACKAGE / "run.py"), "exec")
    with user_code(), pytest.raises(ProcessExit, match=f"^{re.escape(ENDS[end])} would end the program; raise an"):
        exec(called_by_the_run, given)


HANDLED = """
import signal
from cosim.core.compile.process_exits import refuse_exits, user_code
refuse_exits()
with user_code():
    signal.raise_signal(signal.SIGSEGV)
"""


def test_a_crash_that_faulthandler_shows_ends_the_process_too():
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    done = subprocess.run([sys.executable, "-c", HANDLED], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "the signal SIGSEGV to the own process" in done.stderr


# in real time one in which the thread of the loop matters
@pytest.mark.parametrize(
    ("update", "paced"), [("os._exit(0)", False), ("signal.pthread_kill(threading.get_ident(), 11)", True)]
)
def test_functions_that_end_the_process_fail_as_the_controller_does(command, update, paced):
    write(update)
    code, out, err = command("run", "own.yaml", *(["--record", "r.mcap", "--realtime"] if paced else []))
    failed = f"controller 'own' failed: ProcessExit: {ENDS[update]} would end the program; raise an exception instead"
    line = f"stopped at tick 50 (t = 0.05 s): {failed} ({Path.cwd()}/own.py:{LINE})"
    assert (code, err) == (1, [f"own.yaml: {line}"]) and "hinge" in out
    if paced:
        recorded = open_recording("r.mcap")
        assert len(recorded.t) == 50 and recorded.fault == line


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_the_process_does_not_end_while_a_controller_is_set_up(command, end):
    write(load=end)
    (line,) = command.refuses("run", "own.yaml")
    assert re.match(
        r"own.yaml:\d+ controllers\[0\]: cannot be set up: (ProcessExit: os._exit\(0\) would|SystemExit)", line
    )


def test_outside_of_code_of_a_user_the_functions_are_those_of_python(command):
    write()
    assert command("run", "own.yaml")[0] == 0
    with user_code():
        assert os.kill(os.getpid(), 0) is None  # whether it is there
        if not (pid := os.fork()):
            os._exit(7)  # of the process that was forked
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def complete(file):
    """The recording, once the process of the recorder has completed it."""
    recorded = open_recording(file)
    return recorded if not recorded.fault.startswith("the recording is cut off") else None


def python(*words, cwd=None):
    """(exit code, stderr) of a program, without the handler of the tests."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONFAULTHANDLER"}
    done = subprocess.run([sys.executable, *words], cwd=cwd, capture_output=True, text=True, env=environment)
    return done.returncode, done.stderr


def test_a_crash_in_native_code_has_its_sentence_and_leaves_the_recording(tmp_path):
    write("ctypes.string_at(8)", folder=tmp_path, begin=0.2)
    done = python("-m", "cosim", "run", "own.yaml", "--realtime", "--record", "r.mcap", cwd=tmp_path)
    assert done == (1, f"{WHAT.format(what='a segmentation fault')} {FIX}\n")
    recorded = until(lambda: complete(tmp_path / "r.mcap"))
    assert recorded.fault == "the process of the run ended before the run did" and len(recorded.t) > 50


@pytest.mark.parametrize(("end", "what"), [("abort()", "an abort"), ("exit(0)", "a call of exit()")])
def test_other_ends_in_native_code_have_their_sentence(tmp_path, end, what):
    write(f"ctypes.CDLL(None).{end}", folder=tmp_path)
    assert python("-m", "cosim", "run", "own.yaml", cwd=tmp_path) == (1, f"{WHAT.format(what=what)} {FIX}\n")


def test_a_thread_of_a_controller_that_ends_the_process_has_its_sentence(tmp_path):
    write("threading.Thread(target=os._exit, args=(0,)).start(); threading.Event().wait(60)", folder=tmp_path)
    what = "a thread that a controller or part has started ended the program: os._exit(0)"
    done = python("-m", "cosim", "run", "own.yaml", cwd=tmp_path)
    assert done == (1, f"{what}; raise an exception instead\n")


def test_what_ends_a_program_without_a_run_or_from_outside_stays_what_it_is():
    crash = "import ctypes\nfrom cosim.execution.crash import prepare\nprepare()\nctypes.string_at(8)"
    assert python("-c", crash) == (-signal.SIGSEGV, "")
    killed = (
        "import os, signal\n"
        "from cosim.core.compile.process_exits import refuse_exits, user_code\n"
        "from cosim.execution.stop_signals import StopSignals\n"
        "refuse_exits()\n"
        "with user_code(), StopSignals():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    assert python("-c", killed) == (-signal.SIGTERM, "")
