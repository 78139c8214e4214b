"""The first hour of a user, end to end, in a fresh environment: what it took, step by step.

    python -m tests.kit.first_hour [--keep FOLDER]

Makes a virtual environment, installs cosim from this checkout and goes through the tutorial: a rig for robots of the
package example-robot-data, plots, an own impedance controller, another gain, a comparison, emulated motors, a stop.
Exits with 1 at the first step that fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
OWN = {
    "panda": "panda_description/urdf/panda.urdf",
    "anymal": "anymal_b_simple_description/robots/anymal.urdf",
    "talos": "talos_data/robots/talos_reduced.urdf",
}
PATIENCE = 600.0  # s for one command
GAIN = """\
from cosim import compare, load_rig
rig = load_rig("panda.yaml")
before = rig.run("1 s")
rig.set("motion.bandwidth", "3 Hz")
both = compare(before, rig.run("1 s"))
assert both.changed["parameters.motion.bandwidth"] and not both.identical
before.save("before.npz"), both.b.save("after.npz")
print(both)
"""


class FirstHour:
    """The steps in a folder with its own environment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.begun = folder, time.monotonic()
        self.bin = folder / "env" / "bin"

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        before = time.monotonic()
        yield
        print(f"{time.monotonic() - self.begun:7.1f} s  {time.monotonic() - before:6.1f} s  {what}", flush=True)

    def run(self, *words: object, code: int = 0) -> str:
        """What a command printed. Exits if its exit code is another one."""
        command = [str(self.bin / str(words[0])), *map(str, words[1:])]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != code:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def all(self) -> None:
        with self.step("virtual environment"):
            venv.create(self.folder / "env", with_pip=True)
        with self.step("pip install cosim[buses]"):
            self.run("pip", "install", "-q", f"{ROOT}[buses]")
        for name, urdf in OWN.items():
            with self.step(f"cosim new {name}.yaml, then cosim run --plot"):
                self.run("cosim", "new", f"{name}.yaml", ROBOTS / urdf)
                self.run("cosim", "run", f"{name}.yaml", "--plot", f"{name}.png")
        with self.step("cosim check of each"):
            for name in OWN:
                self.run("cosim", "check", f"{name}.yaml")
        with self.step("an own impedance controller, compiled"):
            shutil.copytree(ROOT / "rigs" / "impedance", self.folder / "impedance")
            shutil.copytree(ROOT / "rigs" / "robots", self.folder / "robots")
            said = self.run("cosim", "run", "impedance/ur5_impedance.yaml", "--plot", "impedance.png")
            assert "controller impedance, loop: compiled" in said, said
        with self.step("another gain in Python, two runs compared"):
            self.run("python", "-c", GAIN)
        with self.step("cosim compare"):
            said = self.run("cosim", "compare", "before.npz", "after.npz")
            assert "parameters.motion.bandwidth" in said, said
        with self.step("emulated motors: run with real drivers, then Ctrl-C"):
            self.emulated()
        pictures = sorted(path.name for path in self.folder.glob("*.png"))
        print(f"plots in {self.folder}: {', '.join(pictures)}")

    def emulated(self) -> None:
        """`rigs/arm_can.yaml` against `cosim emulate`, stopped by Ctrl-C."""
        shutil.copy(ROOT / "rigs" / "arm_can.yaml", self.folder)
        group = f"239.83.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
        # a busy machine stalls for longer than the limits of the sample
        patient = ("guard.stale=0.5", "guard.watchdog=3", "drivers.moteus.watchdog=2")
        words = [w for override in (f"drivers.moteus.bus.channel={group}", *patient) for w in ("--set", override)]

        def interruptible() -> None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        def start(*given: str) -> subprocess.Popen[str]:
            command = [self.bin / "cosim", *given, *words]
            pipe = subprocess.PIPE
            environment = os.environ | {"PYTHONUNBUFFERED": "1"}
            return subprocess.Popen(
                command, cwd=self.folder, stdout=pipe, stderr=pipe, text=True, env=environment, preexec_fn=interruptible
            )

        with start("emulate", "arm_can.yaml") as emulation:
            try:
                assert emulation.stdout is not None
                next(line for line in emulation.stdout if line.startswith("emulating"))
                with start("run", "arm_can.yaml", "--yes", "--duration", "60", "--record", "arm.mcap") as run:
                    until = time.monotonic() + PATIENCE
                    while not ((file := self.folder / "arm.mcap").exists() and file.stat().st_size > 100_000):
                        if run.poll() is not None or time.monotonic() > until:
                            sys.exit(f"the run with emulated motors ended: {run.communicate()}")
                        time.sleep(0.1)
                    run.send_signal(signal.SIGINT)
                    _, error = run.communicate(timeout=PATIENCE)
                    assert run.returncode == 1 and re.search(r"interrupted after tick \d+", error), error
            finally:
                emulation.send_signal(signal.SIGINT)


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m tests.kit.first_hour", description="The first hour of a user.")
    options.add_argument("--keep", type=Path, help="folder in which everything is left")
    given = options.parse_args(arguments)
    if given.keep is not None:
        given.keep.mkdir(parents=True)
        FirstHour(given.keep.absolute()).all()
        return 0
    with tempfile.TemporaryDirectory() as folder:
        FirstHour(Path(folder)).all()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
