"""Rigs with many joints, from nothing: a chain of links and arms side by side; their folder gets `rig.yaml`."""

from __future__ import annotations

from pathlib import Path

MOTOR = (
    "{type: dc_motor, resistance: 0.45 ohm, inductance: 0.9 mH, torque_constant: 0.125 N*m/A,"
    " rotor_inertia: 0.35 kg*cm^2, voltage_limit: 48 V, current_limit: 60 A, ratio: 101, viscous: 2.2,"
    " coulomb: 3.5 N*m, bandwidth: 100 Hz}"
)
SINE = "{type: sine, amplitude: 0.02, frequency: 0.5 Hz, ramp: 1 s}"
SCHEDULE = "schedule: {step: 1 ms, duration: 0.2 s}\n"


def chain(n: int) -> str:
    """A chain of n links with drives under computed torque."""
    return (
        "mechanism:\n  gravity: [0, 0, 0]\n  bodies:\n"
        f"    - {{name: rod, joint: h, repeat: {n}, origin: {{xyz: [100 mm, 0, 0]}}, axis: [0, 0.6, 0.8], mass: 0.1,"
        " com: [50 mm, 0, 0], inertia: [1e-5, 8e-5, 8e-5]}\n"
        f"joints:\n  all:\n    actuator: {MOTOR}\n"
        f"controllers:\n  - {{name: c, type: computed_torque, bandwidth: 5 Hz, damping: 1, trajectory: {SINE}}}\n"
    ) + SCHEDULE


def arms(folder: Path, count: int) -> str:
    """Arms of six joints side by side, each with its own controller; writes their URDF to the folder."""
    (folder / "arms.urdf").write_text(_arms_urdf(count))
    text = f"mechanism: {{urdf: arms.urdf}}\njoints:\n  all:\n    actuator: {MOTOR}\ncontrollers:\n"
    for a in range(count):
        joints = ", ".join(f"a{a}_j{j}" for j in range(6))
        text += f"  - {{name: c{a}, type: pid, joints: [{joints}], kp: 1000, ki: 10, kd: 30, trajectory: {SINE}}}\n"
    return text + SCHEDULE


def _arms_urdf(count: int) -> str:
    parts = ['<robot name="arms"><link name="base"/>']
    for a in range(count):
        for j in range(6):
            parent = "base" if j == 0 else f"a{a}_b{j - 1}"
            axis = "0 0 1" if j % 3 == 0 else "0 1 0"
            parts.append(
                f'<link name="a{a}_b{j}"><inertial><origin xyz="0.15 0.01 0.02"/><mass value="2"/>'
                '<inertia ixx="0.002" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
                f'<joint name="a{a}_j{j}" type="continuous"><parent link="{parent}"/><child link="a{a}_b{j}"/>'
                f'<origin xyz="{0.3 if j else float(a)} 0 0"/><axis xyz="{axis}"/></joint>'
            )
    return "\n".join([*parts, "</robot>\n"])
