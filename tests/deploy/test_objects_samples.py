"""Sample rigs as objects for other processors: under an emulator equal to the bit to the engine of this machine."""

import platform
import shutil

import numpy as np
import pytest

from cosim import load_rig
from cosim.compile.compilation import Compilation
from cosim.compile.signed_zeros import with_signed_zeros
from cosim.compile.targets import HOST, targets
from cosim.deploy.playing import TOOLS, Played, played
from cosim.deploy.tick_code import tick_code
from cosim.execution.native_engine import NativeEngine
from tests.kit.levels import few
from tests.kit.object_file import assert_freestanding
from tests.kit.samples import COVERED, FOLDER, without_drivers

TICKS = 1000
BATCH = 5  # rigs in one program
OTHERS = [target for target in TOOLS if target != platform.machine()]
NAMES = [str(file.relative_to(FOLDER).with_suffix("")) for file in without_drivers("**/*.yaml")]
NAMES = [name for name in NAMES if name not in COVERED]


def batches(names):
    return [names[k : k + BATCH] for k in range(0, len(names), BATCH)]


MISSING = [program for target in OTHERS for program in TOOLS[target][:2] if shutil.which(program) is None]


def built(sample, name):
    """(code, signals of the engine (k, n)) or None for a rig with parts in Python."""
    rig = load_rig(FOLDER / f"{sample}.yaml", ["schedule.realtime=no"])
    if not rig.native or rig.tick_model.coupled_in_python:
        return None
    engine, code = NativeEngine(rig.tick_model), tick_code(rig.tick_model, name)
    rows, _ = engine.run(TICKS)
    return code, rig.observe(engine.view("bumpless_start"), rows)


@pytest.mark.skipif(bool(MISSING), reason=f"there is no {', '.join(MISSING)}")
@pytest.mark.skipif(
    "+fma" not in targets()[HOST].features.split(","), reason="this processor fuses no products and sums"
)
@pytest.mark.parametrize("samples", few(batches(NAMES), 1))
def test_rigs_run_on_other_processors_as_in_the_engine(samples):
    found = {name: built(name, f"rig{k}") for k, name in enumerate(samples)}
    rigs = {name: pair for name, pair in found.items() if pair is not None}
    texts = [with_signed_zeros(code.ir) for code, _ in rigs.values()]
    for target in OTHERS:
        objects = Compilation(texts, targets()[target]).result()
        for content in objects:
            assert_freestanding(content)
        items = [
            Played(code.name, content, code.size, expected.shape[1], TICKS)
            for content, (code, expected) in zip(objects, rigs.values(), strict=True)
        ]
        for name, values in zip(rigs, played(items, target), strict=True):
            np.testing.assert_array_equal(values, rigs[name][1], err_msg=f"{name} on {target}")
            numbers = ~np.isnan(values)
            assert (np.signbit(values) == np.signbit(rigs[name][1]))[numbers].all(), f"{name} on {target}"
