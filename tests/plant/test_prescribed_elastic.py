"""Efforts of prescribed joints on elastic links, against inverse dynamics with the modes integrated apart."""

import re
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

from cosim import load_rig

ARM = Path("rigs/elastic/two_link_arm.yaml")
AMPLITUDES, FREQUENCIES = (np.array([0.4, 0.6]), np.array([1.0, 1.5]))
JOINTS = ("shoulder", "elbow")


def moving(tmp_path: Path):
    """The arm with both joints prescribed, and without gravity in the start: it swings along all modes."""
    text = re.sub(r"modes: \{.*?\}", "modes: {bend_y: 1, bend_z: 1}", ARM.read_text())
    head, _ = text.split("joints:\n")
    sines = [
        f"  {name}: {{prescribed: {{type: sine, amplitude: {a}, frequency: {f}}}}}"
        for name, a, f in zip(JOINTS, AMPLITUDES, FREQUENCIES, strict=True)
    ]
    end = "schedule: {step: 0.05 ms, duration: 0.2 s}\n"
    (tmp_path / "arm.yaml").write_text(head + "joints:\n" + "\n".join(sines) + "\n\n" + end)
    return load_rig(tmp_path / "arm.yaml")


def test_efforts_are_those_of_inverse_dynamics_with_the_modes_integrated(tmp_path: Path) -> None:
    rig = moving(tmp_path)
    run, model = rig.run(), rig.plant.model
    driven = np.array([model.dof_index(name) for name in JOINTS])
    modes = model.elastic_dofs
    assert len(modes) == model.nv - 2 == 4
    omega = 2.0 * np.pi * FREQUENCIES

    def state(t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q, v, a = np.zeros((3, model.nv))
        q[driven], v[driven] = AMPLITUDES * np.sin(omega * t), AMPLITUDES * omega * np.cos(omega * t)
        a[driven] = -AMPLITUDES * omega**2 * np.sin(omega * t)
        q[modes], v[modes] = y[: len(modes)], y[len(modes) :]
        return q, v, a

    def accelerated(t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The state at which no effort holds the modes: M_ηη η̈ = −τ_η at η̈ = 0."""
        q, v, a = state(t, y)
        held = model.inverse_dynamics(q, v, a)[modes] + model.equations.friction_effort(v)[modes]
        a[modes] = np.linalg.solve(model.mass_matrix(q)[np.ix_(modes, modes)], -held)
        return q, v, a

    def flow(t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[len(modes) :], accelerated(t, y)[2][modes]])

    times = run.t[:: len(run.t) // 20]
    found = solve_ivp(flow, (0.0, times[-1]), np.zeros(2 * len(modes)), "DOP853", times, rtol=1e-7, atol=1e-10)
    efforts = np.array(
        [model.inverse_dynamics(*accelerated(t, y))[driven] for t, y in zip(times, found.y.T, strict=True)]
    )
    at = np.searchsorted(run.t, times)
    for k, name in enumerate(JOINTS):
        measured = np.asarray(run[f"{name}/effort"])[at]
        np.testing.assert_allclose(measured, efforts[:, k], atol=1e-4 * np.abs(efforts[:, k]).max())
    rigid = np.array([model.inverse_dynamics(*state(t, np.zeros(2 * len(modes))))[driven] for t in times])
    assert np.abs(rigid - efforts).max() > 0.1 * np.abs(efforts).max()
