"""The ticks and the signals of a rig as code for other machines: `cosim_tick` and `cosim_observe`.

`rig.h` declares both for C. The tick is the compiled loop's, without its ring and its clock.
"""

from __future__ import annotations

from cosim.apps.deploy.c_functions import definitions, function
from cosim.core.compile.routine import Routine
from cosim.simulation.loop.loop_text import TickFunction
from cosim.simulation.tick.tick_model import TickModel


def rig_code(model: TickModel, observe: Routine) -> str:
    """The LLVM IR of both functions; observe: `observe_routine`."""
    program = model.compiled_program
    texts = [
        definitions([*program.routines, observe]),
        TickFunction(program).text("cosim_tick"),
        function("cosim_observe", observe, ("start", "row"), ("signals",)),
    ]
    return "\n".join(texts)
