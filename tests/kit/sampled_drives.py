"""Rigs of drives that close their loops themselves, by motor, gears and mode."""

from __future__ import annotations

from typing import Any

from cosim import Rig

MOTORS: dict[str, dict[str, Any]] = {
    "dc_machine": {"type": "dc_machine", "resistance": 1, "inductance": 0.001, "torque_constant": 0.1, "inertia": 2e-4},
    "pmsm": {
        "type": "pmsm", "pole_pairs": 4, "resistance": 0.5, "inductance_d": 1e-3, "inductance_q": 1e-3, "flux": 0.03,
        "inertia": 1.5e-4,
    },
    "stepper": {
        "type": "stepper", "teeth": 50, "resistance": 0.8, "inductance": 2e-3, "torque_constant": 0.2, "inertia": 1e-4,
    },
}  # fmt: skip
ELASTIC = [{"ratio": 20, "stiffness": 50, "damping": 0.002}]
RIGID = [{"ratio": 20}]


def drive(motor: str = "pmsm", mode: str = "velocity", gears: Any = ELASTIC, gain: float = 10, **more: Any) -> Any:
    loops: dict[str, Any] = {"mode": mode, "velocity": {"gain": gain, "rate": 4000, "integral_time": 0.06}}
    if mode == "position":
        loops["position"] = {"gain": more.pop("position_gain", 10), "rate": 1000}
    own = {"current": {"rate": 16000}} if more.pop("sampled", True) else {}
    own |= {"encoder": encoder} if (encoder := more.pop("encoder", None)) else {}
    control = {"bandwidth": 800, "current_limit": 50}
    return {"type": "drive", "motor": MOTORS[motor], "control": control, "gears": gears, "loops": loops | own}


def rig_of(*drives: Any, goal: float = 0.2, link: Any = None, **schedule: Any) -> Rig:
    """An arm of as many joints in a row, without gravity. link: a DC link that all drives are on."""
    on = {} if link is None else {"supply": "link"}
    links = [
        {"name": f"link_{k}", "joint": f"axis_{k}", "axis": [0, 0, 1], "mass": 1, "com": [0.1, 0, 0],
         "origin": {"xyz": [0.2 if k else 0, 0, 0]}, "inertia": [0.1, 0.1, 0.12], "damping": 0.3}
        for k in range(len(drives))
    ]  # fmt: skip
    return Rig.from_dict(
        {
            "mechanism": {"gravity": [0, 0, 0], "bodies": links},
            **({} if link is None else {"supplies": {"link": link}}),
            "joints": {f"axis_{k}": {"actuator": each | on} for k, each in enumerate(drives)},
            "controllers": [
                {
                    "type": "feedforward_pd",
                    "kp": 0,
                    "kd": 1,
                    "trajectory": {"type": "quintic", "goal": goal, "duration": 0.1},
                }
            ],
            "schedule": {"step": "1 ms", "duration": "0.3 s", "integrator": "rodas4", "substeps": 16, **schedule},
        }
    )


CASES = {
    "elastic, velocity": [drive()],
    "elastic, position": [drive(mode="position")],
    "rigid, velocity": [drive(gears=RIGID)],
    "rigid, position": [drive(gears=RIGID, mode="position", position_gain=60)],
    "a DC machine": [drive("dc_machine", "position")],
    "a stepper": [drive("stepper", "position", RIGID)],
    "a continuous current loop": [drive("dc_machine", "position", sampled=False)],
    "an encoder with an observer": [drive("dc_machine", "position", encoder={"cpr": 65536, "bandwidth": 300})],
    "an unstable one": [drive(gain=500)],
    "an unstable position loop": [drive(mode="position", gears=RIGID, position_gain=1500)],
    "two, one unstable": [drive(), drive(gain=400, mode="position")],
}
