"""Steps of an FMU beside the loop of fmpy's `simulate_fmu`, and of two coupled FMUs beside libcosim; same FMUs."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.paired_timing import Budget, RepeatedCall, time_pairs
from benchmarks.peers import import_peer, relative_difference
from benchmarks.peers_generated_c import compiled_c
from benchmarks.peers_libcosim import coupled_by_libcosim
from benchmarks.rows import CPU_TIME, BenchCase, Measurement, Target
from cosim.simulation.coupling import CoupledParts, Wire
from cosim.simulation.fmi import FmuPart

COMPARED = 20  # steps
STEPS = 1000  # of a repetition: what fmpy prepares counts little
STEP = 1e-3  # s
REFUSED = (
    "GetTypesPlatform GetVersion SetDebugLogging SetupExperiment EnterInitializationMode "
    "ExitInitializationMode Terminate Reset GetInteger SetInteger GetBoolean SetBoolean GetString SetString "
    "GetFMUstate SetFMUstate FreeFMUstate SerializedFMUstateSize SerializeFMUstate DeSerializeFMUstate "
    "GetDirectionalDerivative SetRealInputDerivatives GetRealOutputDerivatives CancelStep GetStatus "
    "GetRealStatus GetIntegerStatus GetBooleanStatus GetStringStatus"
)
# N delays: outputs 0 … N - 1, which begin at START, inputs N … 2 N - 1
MODEL = """
#include <stdlib.h>
void *fmi2Instantiate(void) {
    double *c = calloc(2 * N, sizeof(double));
    for (int i = 0; i < N; i++) c[i] = START;
    return c;
}
void fmi2FreeInstance(void *c) { free(c); }
int fmi2GetReal(double *c, const unsigned r[], size_t n, double v[]) {
    for (size_t i = 0; i < n; i++) v[i] = c[r[i]];
    return 0;
}
int fmi2SetReal(double *c, const unsigned r[], size_t n, const double v[]) {
    for (size_t i = 0; i < n; i++) c[r[i]] = v[i];
    return 0;
}
int fmi2DoStep(double *c, double t, double h, int final) {
    for (int i = 0; i < N; i++) c[i] += 10.0 * h * (c[N + i] - c[i]);
    return 0;
}
"""


@contextmanager
def fmu(n: int, start: float = 0.0) -> Iterator[Path]:
    """An FMU with n inputs and n outputs; start: of the outputs."""
    functions = "".join(f"int fmi2{name}(void) {{ return 0; }}\n" for name in REFUSED.split())
    library = compiled_c(f"#define N {n}\n#define START {start}\n{MODEL}{functions}")._name
    platform = import_peer("fmpy").platform
    variables = [
        f'<ScalarVariable name="{way[0]}{i}" valueReference="{i + first}" causality="{way}">'
        f"<Real{start}/></ScalarVariable>"
        for way, first, start in (("output", 0, ""), ("input", n, ' start="0"'))
        for i in range(n)
    ]
    outputs = "".join(f'<Unknown index="{i + 1}" dependencies=""/>' for i in range(n))
    text = (
        '<fmiModelDescription fmiVersion="2.0" modelName="delays" guid="delays">'
        '<CoSimulation modelIdentifier="delays" canHandleVariableCommunicationStepSize="true"/>'
        f"<ModelVariables>{''.join(variables)}</ModelVariables>"
        f"<ModelStructure><Outputs>{outputs}</Outputs></ModelStructure></fmiModelDescription>"
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "delays.fmu")
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("modelDescription.xml", text)
            archive.write(library, f"binaries/{platform}/delays.so")
        yield path


def our_steps(part: FmuPart) -> RepeatedCall:
    """Inputs that rise by 1 per second, from 0."""
    names = list(part.inputs)

    def block(repetitions: int) -> dict[str, np.ndarray]:
        y = part.start(0.0, dict.fromkeys(names, np.zeros(())))
        for i in range(STEPS * repetitions):
            y = part.step(i * STEP, STEP, dict.fromkeys(names, np.array([i * STEP])))
        return y

    return block


def step(n: int, budget: Budget) -> Measurement:
    """CPU time of a step, inputs and outputs included."""
    fmpy = import_peer("fmpy")
    with fmu(n) as path:
        part = FmuPart(path, process=False)
        description, folder = fmpy.read_model_description(str(path)), fmpy.extract(str(path))
        instance = fmpy.instantiate_fmu(folder, description)
        ramp = np.array(
            [(t, *[t] * n) for t in (0.0, 1e6)], [("time", float), *((name, float) for name in part.inputs)]
        )

        def theirs(repetitions: int) -> np.ndarray:
            return fmpy.simulate_fmu(
                folder,
                model_description=description,
                fmu_instance=instance,
                stop_time=STEPS * repetitions * STEP,
                output_interval=STEP,
                input=ramp,
                validate=False,
            )

        ours: Any = our_steps(part)
        found, expected = ([y[name] for name in part.outputs] for y in (ours(1), theirs(1)[-1]))
        difference = relative_difference(np.array(found), np.array(expected))
        samples = time_pairs(ours, theirs, budget, CPU_TIME).per(STEPS, STEPS)
        part.close()
    return Measurement(samples, difference)


def coupled(process: bool, budget: Budget) -> Measurement:
    """Time of a step of both FMUs and of the exchange; process: ours in processes of their own."""
    with fmu(1, 1.0) as first, fmu(1, -2.0) as second:
        parts = {name: FmuPart(path, name, process=process) for name, path in (("a", first), ("b", second))}
        wires = [Wire("a.o0", "b.i0"), Wire("b.o0", "a.i0")]
        master = CoupledParts(parts, wires, "jacobi", 0, STEP).calling_master()
        memory = master.started(0.0, STEP)
        peer = coupled_by_libcosim((first, second), output=0, given=1, h=STEP)

        def ours(repetitions: int) -> None:
            nonlocal memory
            for _ in range(repetitions):
                memory = master.step(memory, STEP)

        ours(COMPARED)
        peer.steps(COMPARED)
        (output,) = master.outputs.index("b", "o0")
        found = master.layout.unpack(memory)["values"][0, output]
        difference = relative_difference(np.array(found), np.array(peer.last()))
        try:
            # other threads and processes do a part of the work of both
            samples = time_pairs(ours, peer.steps, budget, all_processors=True)
        finally:
            master.close()
    return Measurement(samples, difference)


STEP_CASES = [
    BenchCase(
        f"fmu step {2 * n} signals",
        f"a step of an FMU (FMI 2.0 co-simulation) with {n} {'input' if n == 1 else 'inputs'} and as many outputs",
        partial(step, n),
        "fmpy, the loop of simulate_fmu",
        target=Target("ratio", 1.0),
    )
    for n in (1, 20)
]
COUPLED = "a step of two FMUs (FMI 2.0 co-simulation, 2 signals each), the output of each the input of the other"
PEER = "libcosim, its fixed-step algorithm, in its process"
CASES = (
    *STEP_CASES,
    BenchCase("fmu coupled", COUPLED, partial(coupled, False), PEER),
    BenchCase("fmu coupled own processes", f"{COUPLED}, each in a process of its own", partial(coupled, True), PEER),
)
