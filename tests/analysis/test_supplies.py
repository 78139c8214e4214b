"""The sizes of supplies: figures of known currents, and of runs whose energies are known."""

import json
from pathlib import Path

import numpy as np
import pytest

from cosim.apps.analysis.samples import braking, largest_integral, mean, rms
from cosim.apps.analysis.supplies import size_supplies
from cosim.apps.analysis.supply_figures import rated
from cosim.core.errors import InputError
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
    assert link["energy"]["regenerated"] == pytest.approx(back, rel=0.05)  # at the ticks
    # each time of braking counts, and together they are the whole
    assert link["resistor"]["stops"] == 3.0
    assert link["resistor"]["energy_per_stop"] < powers["link"]["chopper"]
    assert link["resistor"]["power_mean"] * 1.2 == pytest.approx(powers["link"]["chopper"], rel=1e-9)
    assert link["fuse"]["rated_current"] >= link["supply"]["current_rms"] / 0.8
    u = run["link/voltage"]
    peak = link["supply"]["current_peak"]
    assert link["capacitor"]["capacitance"] == pytest.approx(peak / (300.0 * 0.1 * np.median(u) * 0.8), rel=1e-12)
    # a capacitor of that size, which alone gives the current for a sixth of a period, falls by the ripple at most
    assert peak / 300.0 / (0.8 * link["capacitor"]["capacitance"]) == pytest.approx(0.1 * np.median(u))


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


def test_a_rig_without_a_supply_is_refused(sample, said) -> None:
    with pytest.raises(InputError) as caught:
        size_supplies(sample("two_link").run(0.01))
    said(caught.value)
