"""The sizes of supplies: figures of known currents, and of runs whose energies are known."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from cosim import Rig
from cosim.apps.analysis.brake_resistor import largest_resistance
from cosim.apps.analysis.samples import braking, largest_integral, mean, rms
from cosim.apps.analysis.supplies import size_supplies
from cosim.apps.analysis.supply_figures import rated
from cosim.core.errors import InputError, RunWarning
from cosim.mechanics.bondgraph.graph import DcSource
from cosim.rig.run.run import Run
from tests.kit.samples import FOLDER

RIG = str(FOLDER / "drives" / "dc_link.yaml")
T = np.linspace(0.0, 2.0, 2001)


def test_means_of_a_sine_have_their_closed_forms() -> None:
    current = 3.0 + 4.0 * np.sin(2.0 * np.pi * 5.0 * T)
    assert mean(T, current) == pytest.approx(3.0, rel=1e-9)
    assert rms(T, current) == pytest.approx(np.sqrt(9.0 + 8.0), rel=1e-9)
    # ∫ over a half period around a peak: 3 · 0.1 + 4 · 2 / (2π 5)
    assert largest_integral(T, current, 0.1) == pytest.approx(0.3 + 8.0 / (10.0 * np.pi), rel=1e-4)


def test_times_of_braking_are_apart_by_pauses() -> None:
    power = np.where((T > 0.1) & (T < 0.2) | (T > 0.22) & (T < 0.3) | (T > 1.0) & (T < 1.5), 50.0, 0.0)
    found = [(round(T[a], 2), round(T[b], 2)) for a, b in braking(T, power)]
    assert found == [(0.1, 0.3), (1.0, 1.5)]
    assert braking(T, np.zeros_like(T)) == []
    assert braking(T, np.ones_like(T)) == [(0, 2000)]


def test_fuses_have_the_next_rated_current() -> None:
    assert [rated(i) for i in (0.1, 2.0, 5.1, 63.1, 201.0, 900.0)] == [2.0, 2.0, 6.0, 80.0, 250.0, 1000.0]


def test_the_sizes_of_a_link_are_those_of_its_run(sample) -> None:
    rig = sample("drives/dc_link")
    run = rig.run()
    found = size_supplies(run, 0.1).as_json()
    link = {
        group: {key: figure["value"] for key, figure in of.items()} for group, of in found["supplies"]["link"].items()
    }
    energy, powers = run.summary["energy"], run.summary["powers"]
    assert link["energy"]["taken"] == pytest.approx(energy["work_in"], rel=1e-9)
    assert link["energy"]["chopper"] == powers["link"]["chopper"]
    back = sum(powers[axis]["returned"] for axis in ("table", "arm"))
    assert link["energy"]["regenerated"] == pytest.approx(back, rel=1e-12)
    # each time of braking counts, and together they are the whole
    assert link["resistor"]["stops"] == 3.0
    assert link["resistor"]["energy_per_stop"] < powers["link"]["chopper"]
    assert link["resistor"]["power_mean"] * 1.2 == pytest.approx(powers["link"]["chopper"], rel=1e-9)
    assert link["fuse"]["rated_current"] >= link["supply"]["current_rms"] / 0.8
    # behind a bridge of 310 V and 0.4 Ω the link is lowest where the current is largest
    fed, peak = link["capacitor"]["voltage_fed"], link["capacitor"]["current_fed"]
    assert fed == pytest.approx(310.0 - 0.4 * peak, rel=1e-12) and peak <= link["supply"]["current_peak"]
    # a capacitor of that size, which alone gives the current for a sixth of a period, falls by the ripple
    assert peak / 300.0 / (0.8 * link["capacitor"]["capacitance"]) == pytest.approx(0.1 * fed)


# --- rigs of two axes that stop together ---

BODIES = [
    {"name": name, "parent": "base", "joint": name, "type": "continuous", "axis": [0, 0, 1], "mass": 9,
     "inertia": [0.3, 0.3, inertia]}
    for name, inertia in (("first", 0.5), ("second", 0.3))
]  # fmt: skip
MOTOR = {"type": "pmsm", "pole_pairs": 4, "resistance": 0.9, "inductance_d": 5e-3, "inductance_q": 5e-3, "flux": 0.14,
         "inertia": 12e-4}  # fmt: skip
SOURCES: dict[str, dict[str, Any]] = {
    "diode_bridge": {"voltage": 540, "resistance": 0.4},
    "active_front_end": {"voltage": 700, "current_limit": 30},
    "battery": {"capacity": "2 A*h", "charges": [0, 1], "voltages": [540, 560], "resistance": 0.4},
}
CHOPPER = {"threshold": 750, "resistance": 60}
# of the group `supply`, beside those of every source
OF_KIND = {
    "diode_bridge": {"line_current_rms"},
    "active_front_end": {"current_returned", "returned_peak"},
    "battery": {"current_returned", "returned_peak", "charge", "charge_min", "charge_end", "terminals_min"},
}


def link_of(source: str = "diode_bridge", **keys: Any) -> dict[str, Any]:
    return {"source": {"type": source, **SOURCES[source]}, "capacitance": 500e-6, "chopper": CHOPPER, **keys}


def rig_of(
    links: dict[str, Any], of: tuple[str, str], powers: bool = True, duration: float = 0.7, **others: Any
) -> dict[str, Any]:
    """of: the supply of each axis."""
    joints = {
        axis: {
            "actuator": {
                "type": "drive", "motor": MOTOR, "gears": [{"ratio": 10}], "supply": supply, "powers": powers,
                "control": {"bandwidth": 300, "current_limit": 20, "voltage_limit": 300},
            }
        }
        for axis, supply in zip(("first", "second"), of, strict=True)
    }  # fmt: skip
    profile = {"type": "trapezoidal", "goal": 6.0, "max_velocity": 30, "max_acceleration": 200, "delay": 0.05}
    controllers = [{"name": "move", "type": "feedforward_pd", "kp": 5000, "kd": 100, "trajectory": profile}]
    schedule = {"step": "1 ms", "duration": duration, "integrator": "rodas4", "substeps": "auto"}
    rig = {"mechanism": {"gravity": [0, 0, 0], "bodies": BODIES}, "supplies": links, "joints": joints}
    return {**rig, "controllers": controllers, "schedule": schedule, **others}


def sizes_of(rig: dict[str, Any]) -> tuple[Run, dict[str, dict[str, dict[str, float]]]]:
    """(the run, the figures of each supply by group)"""
    run = Rig.from_dict(rig).run()
    found = size_supplies(run).as_json()["supplies"]
    return run, {
        name: {group: {key: figure["value"] for key, figure in of.items()} for group, of in groups.items()}
        for name, groups in found.items()
    }


def test_every_source_is_looked_at() -> None:
    assert set(SOURCES) == set(OF_KIND) == set(DcSource.types)


@pytest.mark.parametrize("kind", SOURCES)
def test_each_link_has_its_own_figures_by_the_kind_of_its_source(kind: str) -> None:
    """Those of one of two links are those of the link alone."""
    links = {"one": link_of(kind), "other": link_of()}
    run, both = sizes_of(rig_of(links, ("one", "other")))
    alone = rig_of({"one": link_of(kind)}, ("one", "one"))
    alone["mechanism"]["bodies"] = BODIES[:1]
    del alone["joints"]["second"]
    _, single = sizes_of(alone)
    assert set(both) == {"one", "other"}
    for group, figures in single["one"].items():
        # the steps of both rigs are chosen for all joints
        assert both["one"][group] == pytest.approx(figures, rel=2e-3, abs=1e-3), group
    found = both["one"]
    assert set(found["supply"]) == {"current_peak", "current_rms", "power_peak", "power_mean"} | OF_KIND[kind]
    assert ("capacitance" in found["capacitor"]) == ("line_rated_current" in found["fuse"]) == (kind == "diode_bridge")
    assert (set(found["resistor"]) == {"stops"}) == (kind != "diode_bridge")  # which burns what comes back
    powers = run.summary["powers"]
    assert found["energy"]["regenerated"] == powers["first"]["returned"]
    if kind == "battery":
        taken = float(np.trapezoid(run["one/current"], run.t))
        assert found["supply"]["charge"] == pytest.approx(taken / 3600.0, rel=0.03)  # at the ticks
        assert found["supply"]["terminals_min"] == run["one/voltage"].min()
    else:
        passed = powers["one"]["electrical"] - powers["one"].get("supply", 0.0)
        assert found["supply"]["power_mean"] * 0.7 == pytest.approx(passed)


def test_energies_without_powers_are_those_at_the_ticks() -> None:
    run = Rig.from_dict(rig_of({"link": link_of()}, ("link", "link"), powers=False)).run()
    figure = size_supplies(run).as_json()["supplies"]["link"]["energy"]["regenerated"]
    exact, _ = sizes_of(rig_of({"link": link_of()}, ("link", "link")))
    back = sum(exact.summary["powers"][axis]["returned"] for axis in ("first", "second"))
    assert "at the ticks" in figure["from"]
    assert figure["value"] == pytest.approx(back, rel=0.03)


# --- what the figures do not depend on ---


def test_the_capacitor_depends_neither_on_the_rest_nor_on_the_charging() -> None:
    plain, resting = (sizes_of(rig_of({"link": link_of()}, ("link", "link"), duration=end))[1] for end in (0.7, 1.4))
    charged = rig_of({"link": link_of(voltage=0)}, ("link", "link"))
    for found in (resting["link"], sizes_of(charged)[1]["link"]):
        for key in ("voltage_fed", "current_fed", "capacitance"):
            assert found["capacitor"][key] == pytest.approx(plain["link"]["capacitor"][key], rel=1e-3)


def test_the_largest_resistance_is_the_one_that_just_holds_the_link() -> None:
    """Whatever the resistance of the run; with it the link comes as far as the voltage at which the chopper is always
    on."""

    def run(resistance: float) -> tuple[Run, float]:
        link = link_of(chopper={**CHOPPER, "resistance": resistance})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RunWarning)
            found, sizes = sizes_of(rig_of({"link": link}, ("link", "link")))
        return found, sizes["link"]["resistor"]["resistance"]

    _, least = run(20.0)
    assert [run(resistance)[1] for resistance in (60.0, 120.0)] == pytest.approx([least] * 2, rel=1e-3)
    assert run(least)[0]["link/voltage"].max() == pytest.approx(760.0, abs=0.5)


@pytest.mark.parametrize("length", [2e-3, 20e-3, 0.2])
def test_the_largest_resistance_of_a_pulse_is_that_by_another_integrator(length: float) -> None:
    """Half a sine of 4 kW; a chopper from 750 to 760 V."""
    capacitance, end = 500e-6, 1.5 * length

    def power(t: float) -> float:
        return 4e3 * np.sin(np.pi * t / length) if t < length else 0.0

    def excess(resistance: float) -> float:
        def rate(t: float, u: Any) -> Any:
            share = np.clip((u - 750.0) / 10.0, 0.0, 1.0)
            return (power(t) - share * u * u / resistance) / (capacitance * u)

        found = solve_ivp(rate, (0.0, end), [740.0], rtol=1e-8, atol=1e-8, max_step=length / 200)
        return float(found.y[0].max()) - 760.0

    t = np.arange(0.0, end, length / 100)
    found = largest_resistance(t, np.array([power(float(at)) for at in t]), 740.0, capacitance, 750.0, 760.0)
    if excess(1e9) < 0.0:
        assert np.isinf(found)  # the capacitor takes it all
    else:
        assert found == pytest.approx(brentq(excess, 100.0, 1e6), rel=0.02)


def test_the_command_writes_text_figures_and_a_page(command, tmp_path: Path) -> None:
    page, figures = tmp_path / "supplies.html", tmp_path / "supplies.json"
    code, out, err = command("analyze", RIG, "--supplies", "--report", str(page), "--json", str(figures))
    assert (code, err) == (0, [])
    assert "peak current" in out
    found = json.loads(figures.read_text())
    assert found["supplies"]["link"]["fuse"]["rated_current"]["unit"] == "A"
    text = page.read_text()
    assert "<h2>link</h2>" in text and "energy of a stop" in text and text.count("<svg") == 2


def test_a_recorded_run_is_sized_as_the_run_itself(command, tmp_path: Path) -> None:
    recording = tmp_path / "link.mcap"
    assert command("run", RIG, "--record", str(recording))[0] == 0
    of_rig, of_run = (
        json.loads(command("analyze", path, "--supplies", "--json", "-")[1]) for path in (RIG, str(recording))
    )
    assert of_run["supplies"] == of_rig["supplies"]


@pytest.mark.parametrize(
    "words",
    [
        ["--report", "r.html"],
        ["--supplies", "--plot", "a.png"],
        ["--supplies", "--ripple", "0"],
        ["--supplies", "--report", "r.txt"],
    ],
    ids=["a report alone", "a plot", "no ripple", "a wrong suffix"],
)
def test_mistakes_of_the_command(words: list[str], command, said) -> None:
    code, out, err = command("analyze", RIG, *words)
    assert (code, out) == (2, "")
    said(err)


KEPT: dict[str, Any] = {
    "thinned": {"every": 50},
    "the last tick": "final",
    "the end": {"last": "0.1 s"},
    "signals": {"signals": ["table/position"]},
}


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT)
def test_what_a_rig_keeps_does_not_matter(keep: Any, command, sample, said) -> None:
    """A run of which not all was kept is refused."""
    words = "analyze", RIG, "--supplies", "--json", "-"
    assert json.loads(command.prints(*words, "--set", f"keep={json.dumps(keep)}")) == json.loads(command.prints(*words))
    with pytest.raises(InputError) as caught:
        size_supplies(sample("drives/dc_link").run(keep=keep))
    said(caught.value)


def test_warnings_of_the_run_are_passed_on(command) -> None:
    """Those before it and those of its results, on stderr as `cosim run` has them, and in the figures."""
    values = (
        "joints.arm.limits={velocity: 400 deg/s}", "guard.actions={velocity: warn}",
        "supplies.link.chopper.resistance=300 ohm",
    )  # fmt: skip
    poor = [word for value in values for word in ("--set", value)]
    code, out, err = command("analyze", RIG, "--supplies", "--json", "-", *poor)
    told = command("run", RIG, "--json", "-", *poor)
    assert (code, told[0]) == (0, 0) and err == told[2]
    assert any("reference of joint" in line for line in err) and any("chopper is always on" in line for line in err)
    assert [f"warning: {line}" for line in json.loads(out)["warnings"]] == err


def test_a_rig_without_a_supply_is_refused(sample, said) -> None:
    with pytest.raises(InputError) as caught:
        size_supplies(sample("two_link").run(0.01))
    said(caught.value)
