"""What a program needs to know of the code of a rig, as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from cosim.apps.deploy.fault_codes import fault_codes
from cosim.apps.deploy.parameters import DeployedParameter, parameters_of
from cosim.apps.deploy.tick_code import TickCode
from cosim.core.compile.object_code import CodeTarget
from cosim.rig.run.run_metadata import signal_units
from cosim.rig.wiring.wired_rig import WiredRig


def description_of(rig: WiredRig, code: TickCode, target: CodeTarget, functions: Sequence[str]) -> dict[str, Any]:
    """functions: names of those that the file has. Places are indices of doubles in the memory."""
    model = rig.tick_model
    return {
        "rig": rig.spec.name,
        "name": code.name,
        "cosim": version("cosim"),
        "hash": sha256(code.ir.encode()).hexdigest(),
        "target": {"triple": target.triple, "cpu": target.cpu, "features": target.features},
        "step": model.step,
        "memory": code.size,
        "bodies": code.bodies,
        "functions": list(functions),
        "places": {
            ".".join(path): {"at": where.start, "shape": list(shape)}
            for path, (where, shape) in model.layout.places.items()
        },
        "signals": [{"name": name, "unit": unit} for name, unit in signal_units(rig).items()],
        "parameters": [_parameter(parameter) for parameter in parameters_of(rig)],
        "faults": [fault._asdict() for fault in fault_codes()],
    }


def as_text(description: Mapping[str, Any]) -> str:
    """JSON has no numbers that are not finite."""
    return json.dumps(description, indent=1, allow_nan=False) + "\n"


def _parameter(parameter: DeployedParameter) -> dict[str, Any]:
    """null for what is not bounded."""
    return {k: v if isinstance(v, str) or math.isfinite(v) else None for k, v in parameter._asdict().items()}
