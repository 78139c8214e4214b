"""What a part computes arrives at the load motor of a bench, and what it reads is the measured motion: parts in machine
code beside the compiled bus, parts in Python and FMUs beside the Python engine."""

import os
import zlib
from pathlib import Path

import numpy as np
import pytest
import yaml

from cosim import load_rig
from tests.fmi import fmus
from tests.kit.emulated import emulated

BENCH = Path(__file__).parents[2] / "rigs" / "dynamometer"
TORQUE = 0.7  # N·m, of the part, beside what passes through it
PART = """
from cosim.plugin import Signal, params

@params
class Params:
    pass

class Passing:
    inputs = {"real_in": Signal((), "1")}
    outputs = {"real_out": Signal((), "1")}

    def __init__(self, params):
        self.params = params

    def initial(self):
        return {"nothing": 0.0}

    def update(self, t, p, x, u):
        PYTHON
        return {"nothing": 0.0 * x["nothing"]}, {"real_out": u["real_in"]}

def load(params):
    return Passing(params)
"""


def part_of(kind: str, folder: Path) -> dict:
    if kind == "FMU":
        return {"name": "part", "fmu": str(fmus.build(folder, "passing", 2)), "outputs": ["real_out"]}
    (folder / "passing.py").write_text(PART.replace("PYTHON", "float(t)" if kind == "in Python" else ""))
    return {"name": "part", "type": "passing.py"}


def run_of(kind: str, torque: float, folder: Path):
    """(run, efforts that the load motor requested) of a joint that swings; the part adds `torque` to what it passes,
    a hundredth of the velocity."""
    rig = yaml.safe_load((BENCH / "elbow.yaml").read_text())
    channels = {}
    for driver in rig["drivers"]:
        number = zlib.crc32(f"{os.getpid()} {folder} {driver['name']} {torque}".encode()) % 0xFFFFFF
        driver["bus"]["channel"] = f"239.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        driver["watchdog"] = "3 s"
        channels[driver["name"]] = driver["bus"]["channel"]
    forearm = {**rig["mechanism"]["bodies"][1], "parent": "base"}
    rig["mechanism"]["bodies"] = [forearm]
    swing = {"type": "sine", "amplitude": 0.15, "frequency": 1.0, "ramp": 0.2}
    rig["controllers"] = [{"type": "feedforward_pd", "kp": 2.0, "kd": 0.1, "trajectory": swing}]
    # a machine that stalls makes feedback late
    rig["joints"]["all"]["limits"] |= {"velocity": 20.0, "tracking": 3.0, "frozen": 3.0}
    rig["guard"] = {"stale": "2 s", "watchdog": "3 s"}
    rig["parts"] = [part_of(kind, folder)]
    rig["couplings"] = {
        "time_limit": "2 s",
        "wires": [
            {"output": "mechanism.elbow/velocity", "input": "part.real_in", "factor": 1.0},
            {"output": "part.real_out", "input": "mechanism.elbow/effort", "factor": 0.01, "offset": f"{torque} N*m"},
        ],
    }
    rig["schedule"] = {"step": "10 ms", "duration": "0.8 s", "realtime": {"overrun": "skip", "warm_up": 60}}
    path, asked = folder / f"elbow {torque}.yaml", []
    path.write_text(yaml.safe_dump(rig, sort_keys=False))
    sets = [f"drivers.{name}.bus.channel={channel}" for name, channel in channels.items()]
    one = load_rig(path)
    assert one.why_python_loop == ("" if kind == "in machine code" else "the part 'part' is in Python")
    with emulated(BENCH / "bench.yaml", *sets, after_step=lambda e: asked.append(e.motors.motors[1].requested)):
        return one.run(), np.array(asked)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """Without a torque of the part."""
    return run_of("in machine code", 0.0, tmp_path_factory.mktemp("quiet"))


@pytest.mark.real_time
@pytest.mark.parametrize("kind", ["in machine code", "in Python", pytest.param("FMU", marks=fmus.needs_gcc)])
def test_the_effort_of_a_part_arrives_at_the_load_motor(kind, quiet, tmp_path):
    (without, unpushed), (pushed, asked) = quiet, run_of(kind, TORQUE, tmp_path)
    read, velocity = pushed["part/real_out"], pushed["elbow/velocity"]
    assert np.ptp(velocity) > 0.2
    late = int(kind != "FMU")  # a sampled part reads at the beginning of a tick, what it returns is of its end
    np.testing.assert_allclose(read[late:], velocity[: len(velocity) - late], atol=1e-9)
    first = slice(3, 12)  # before it swings
    commanded = np.median(pushed["elbow/load_effort"][first]) - np.median(without["elbow/load_effort"][first])
    assert commanded == pytest.approx(TORQUE, abs=0.1)
    on = [efforts[efforts != 0.0] for efforts in (unpushed, asked)]
    assert np.median(on[1]) - np.median(on[0]) == pytest.approx(TORQUE / 9.0, abs=0.03)
