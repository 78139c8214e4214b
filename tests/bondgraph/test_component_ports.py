"""Every port of every component of the library, its bond in either direction: the balance of energy closes, or the
direction is refused."""

from itertools import product
from typing import Any

import pytest

from cosim import Rig
from cosim.core.errors import InputErrors
from cosim.core.plugin_loading import COMPONENT, known_names
from tests.bondgraph.test_rigid_graphs import rig_of

GAP = {"length": "1 m", "diameter": "10 mm"}
COMPONENTS: dict[str, dict[str, Any]] = {
    "accumulator": {"volume": "1 l", "precharge": "2 MPa", "inlet": 1e-9},
    "active_front_end": {"voltage": 4, "current_limit": 3},
    "ball_screw": {"lead": "20 mm", "efficiency": 0.9, "inertia": 0.01, "mass": 1, "stiffness": 1e5, "damping": 10},
    "battery": {"capacity": 50, "charges": [0, 1], "voltages": [3, 5], "resistance": 0.5},
    "belt": {"radius": "20 mm", "inertia": 0.01, "stiffness": 1e5, "damping": 10, "mass": 1},
    "bldc": {"pole_pairs": 2, "resistance": 0.5, "inductance": "20 mH", "back_emf": 0.05, "inertia": 0.01},
    "cable": {"length": 100, "resistance": 5e-3, "inductance": 1e-4},
    "chamber": {"volume": "1 l"},
    "cylinder": {"area_a": 2e-3, "area_b": 1e-3, "stroke": 1, "extension": 0.5, "dead_volume": "0.1 l"},
    "dc_link": {"source": {"type": "diode_bridge", "voltage": 4, "resistance": 0.5}, "capacitance": 0.05},
    "dc_machine": {"resistance": 0.5, "inductance": "20 mH", "torque_constant": 0.1, "inertia": 0.01},
    "dc_motor": {"torque_constant": 0.1, "rotor_inertia": 1e-3, "ratio": 10, "resistance": 0.5, "inductance": "20 mH"},
    "diode_bridge": {"voltage": 4, "resistance": 0.5},
    "flow_pump": {"flow": 1e-4, "leakage": 1e-12},
    "fluid_column": {"volume": "1 l", "area": 2e-3},
    "friction": {"model": "stribeck", "coulomb": 0.5},
    "gear_stage": {"ratio": 3, "stiffness": 100, "damping": 1, "viscous": 0.1, "inertia": 0.01},
    "harmonic_drive": {"ratio": 10, "stiffness": 100},
    "hydraulic_motor": {"displacement": 1e-5},
    "ideal_cylinder": {"area_a": 2e-3, "area_b": 1e-3},
    "induction_machine": {
        "pole_pairs": 2,
        "stator_resistance": 0.5,
        "rotor_resistance": 0.4,
        "stator_leakage": "5 mH",
        "rotor_leakage": "5 mH",
        "magnetising_inductance": "60 mH",
        "inertia": 0.01,
    },
    "laminar_restriction": GAP,
    "line": GAP,
    "linear_motor": {
        "pole_pitch": "60 mm",
        "force_constant": 5,
        "resistance": 0.5,
        "inductance_d": "20 mH",
        "inductance_q": "30 mH",
        "mass": 1,
    },
    "orifice": {"area": 1e-5},
    "planetary": {"ring_ratio": 2},
    "pmsm": {
        "pole_pairs": 2,
        "resistance": 0.5,
        "inductance_d": "20 mH",
        "inductance_q": "30 mH",
        "flux": 0.05,
        "inertia": 0.01,
    },
    "pressure_pump": {"pressure": 3e6},
    "rack": {"radius": "20 mm", "efficiency": 0.9, "inertia": 0.01, "mass": 1, "stiffness": 1e5, "damping": 10},
    "relief_valve": {"cracking": 1e6, "flow": 1e-3, "override": 1e6},
    "shaft": {"stiffness": 100, "damping": 1},
    "spool_valve": {"diameter": "8 mm", "max_opening": "0.5 mm", "command": "2e-4 * sin(5*t)"},
    "stepper": {"teeth": 5, "resistance": 0.5, "inductance": "20 mH", "torque_constant": 0.3, "inertia": 0.01},
    "variable_chamber": {"volume": "1 l"},
}
# component -> its ports and the first letter of their domain
PORTS = {
    "accumulator": "port:h",
    "active_front_end": "output:e",
    "ball_screw": "input:r output:t",
    "battery": "output:e",
    "belt": "input:r output:t",
    "bldc": "alpha:e beta:e shaft:r",
    "cable": "conductor:e",
    "chamber": "port:h",
    "cylinder": "a:h b:h rod:t",
    "dc_link": "bus:e",
    "dc_machine": "armature:e shaft:r",
    "dc_motor": "joint:r",
    "diode_bridge": "output:e",
    "flow_pump": "port:h",
    "fluid_column": "a:h b:h wall:h",
    "friction": "body:r",
    "gear_stage": "input:r output:r",
    "harmonic_drive": "input:r output:r",
    "hydraulic_motor": "a:h b:h shaft:r",
    "ideal_cylinder": "a:h b:h rod:t",
    "induction_machine": "alpha:e beta:e shaft:r",
    "laminar_restriction": "a:h b:h",
    "line": "a:h b:h",
    "linear_motor": "d:e q:e shaft:t",
    "orifice": "a:h b:h",
    "planetary": "sun:r ring:r arm:r",
    "pmsm": "d:e q:e shaft:r",
    "pressure_pump": "port:h",
    "rack": "input:r output:t",
    "relief_valve": "a:h b:h",
    "shaft": "input:r output:r",
    "spool_valve": "p:h t:h a:h b:h",
    "stepper": "a:e b:e shaft:r",
    "variable_chamber": "port:h wall:h",
}
# domain -> what a port meets: source, resistance, and storage that may be chosen
MEETS = {
    "h": ("hydraulic", "2e6 + 1e6*sin(8*t)", 1e9, {"C": 1e10, "I": 1e6}),
    "e": ("electrical", "5*cos(9*t)", 1.0, {"C": 50.0, "I": 0.05}),
    "r": ("rotational", "2*sin(7*t)", 0.5, {"C": 40.0, "I": 0.05}),
    "t": ("translational", "200*sin(7*t)", 500.0, {"C": 4e4, "I": 5.0}),
}
STIFF = {"duration": "0.2 s", "integrator": "rodas4", "substeps": "auto", "tolerance": 1e-11}
SLIDE = {"name": "load", "joint": "axis", "type": "prismatic", "axis": [0, 0, 1], "mass": 500}


def test_the_table_has_every_component() -> None:
    # signals have no power, and bonds of gas carry mass beside enthalpy: test_pneumatics closes their balance
    without_power = {"play", "relay", *(name for name in known_names(COMPONENT) if name.startswith("gas_"))}
    assert set(COMPONENTS) == set(PORTS) == set(known_names(COMPONENT)) - without_power


@pytest.mark.parametrize("name", COMPONENTS)
def test_bonds_of_ports_in_either_direction_close_the_balance_of_energy(name: str) -> None:
    """A port that moves is bonded to the joint, the others to sources behind resistances with a storage of either kind:
    one of these runs in each direction, except where a transformer or a storage points one way."""
    ports = dict(port.split(":") for port in PORTS[name].split())
    on_joint = next((port for port, letter in ports.items() if letter in "rt"), None)
    for turned in ports:
        for inwards in (False, True):
            ran, refused = 0, set[str]()
            for storages in product("CI-", repeat=len(ports) - (on_joint is not None)):
                try:
                    rig = bonded(name, ports, on_joint, {port: inwards == (port == turned) for port in ports}, storages)
                except InputErrors as error:
                    refused.add(str(error))
                    continue
                energy = rig.run().summary["energy"]
                assert energy is not None and abs(energy["residual_relative"]) < 1e-9, (turned, inwards, storages)
                ran += 1
                break
            assert ran or all("one bond in and one out" in text or "points to it" in text for text in refused), refused


def bonded(
    name: str, ports: dict[str, str], on_joint: str | None, inwards: dict[str, bool], storages: tuple[str, ...]
) -> Rig:
    elements: dict[str, Any] = {}
    junctions: dict[str, int] = {}
    bonds = []
    left = iter(storages)
    for port, letter in ports.items():
        end = "joint"
        if port != on_joint:
            domain, law, resistance, values = MEETS[letter]
            end, storage = f"at_{port}", next(left)
            elements[f"source_{port}"] = {"type": "Se", "domain": domain, "law": law}
            elements[f"loss_{port}"] = {"type": "R", "domain": domain, "resistance": resistance}
            junctions |= {end: 1 if storage == "I" else 0, f"series_{port}": 1}
            bonds += [f"source_{port} -> series_{port} -> loss_{port}", f"series_{port} -> {end}"]
            if storage != "-":
                key = "inertia" if storage == "I" else "stiffness"
                elements[f"storage_{port}"] = {"type": storage, "domain": domain, key: values[storage]}
                bonds.append(f"{end} -> storage_{port}")
        bonds.append(f"{end} -> part.{port}" if inwards[port] else f"part.{port} -> {end}")
    if on_joint is None:
        elements["free"] = {"type": "Se", "domain": "rotational", "effort": 0}
        bonds.append("free -> joint")
    graph = {
        "elements": elements,
        "junctions": junctions,
        "bonds": bonds,
        "components": {"part": {"type": name, **COMPONENTS[name]}},
    }
    body = {"body": SLIDE} if on_joint and ports[on_joint] == "t" else {}
    return rig_of(graph, {}, {"initial": {"velocity": 0.1}}, **body, schedule=STIFF)
