"""Ranges of the fields of each model, in rad, rad/s and N·m: of the output, ± each.

T-Motor and CubeMars: manual of the AK series' drives, 1.0.8, section 5.3 (the table on page 50); Damiao: the registers
PMAX, VMAX and TMAX as delivered. kp and kd are 0 … 500 N·m/rad and 0 … 5 N·m·s/rad in all. A name whose drives have
several ranges is followed by @ and the version of the ranges:

    AK80-9@v1     the code example of the same manual, page 50; Hardware/TMotor/ak80_9.h of logeexpluoqi/BionicRobotFish
    AK10-9@v1     TMotorAK10_9.h of LegoYoda112/slider_joint_control, for 24 V
    …@v2          the table of the manual

Drives of V3 have other frames and are refused: commands in 29 bit frames with gains first, answers in 0.1°, 10 rpm of
the field and 10 mA (AK Series Module Product Manual 3.0.0, sections 4.2 and 4.3).
"""

from __future__ import annotations

import re

from cosim.core.errors import did_you_mean
from cosim.plugins.drivers.mit.codec import Ranges

MAX_KP, MAX_KD = 500.0, 5.0
CUSTOM = "custom"
_THIRD_VERSION = re.compile(r"AK.*[^A-Z0-9]V3(\.0)?", re.IGNORECASE)
MODELS: dict[str, tuple[float, float, float]] = {
    "AK10-9@v1": (12.5, 23.24, 54),
    "AK10-9@v2": (12.5, 50, 65),
    "AK60-6": (12.5, 45, 15),
    "AK70-10": (12.5, 50, 25),
    "AK80-6": (12.5, 76, 12),
    "AK80-8": (12.5, 37.5, 32),
    "AK80-9@v1": (95.5, 30, 18),
    "AK80-9@v2": (12.5, 50, 18),
    "AK80-64": (12.5, 8, 144),
    "DM4310": (12.5, 30, 10),
    "DM4310P": (12.5, 50, 10),
    "DM4340": (12.5, 10, 28),
    "DM6006": (12.5, 45, 20),
    "DM8006": (12.5, 45, 40),
    "DM8009": (12.5, 45, 54),
    "DM10010": (12.5, 20, 200),
    "DM10010L": (12.5, 25, 200),
    "DMH3510": (12.5, 280, 1),
    "DMH6215": (12.5, 45, 10),
    "DMG6220": (12.5, 45, 10),
}


def ranges_of(model: str, given: dict[str, float | None]) -> Ranges:
    """given: by key, for a CUSTOM model. Raises ValueError for an unknown model, for one that has several ranges, and
    for ranges that are missing or belong to a known model."""
    if versions := [name for name in MODELS if name.startswith(f"{model}@")]:
        known = " or ".join(f"{name} ({_text(MODELS[name])})" for name in versions)
        raise ValueError(f"drives named '{model}' have several ranges; by the manual of yours set {known}")
    if _THIRD_VERSION.fullmatch(model):
        raise ValueError(
            f"'{model}': AK drives of V3 have other frames than V1 and V2, which this driver does not know;"
            " use a drive of V1 or V2"
        )
    if model != CUSTOM and model not in MODELS:
        raise ValueError(f"unknown model '{model}'{did_you_mean(model, (*MODELS, CUSTOM))}")
    for key, value in given.items():
        if model == CUSTOM and value is None:
            raise ValueError(f"a custom model needs '{key}', as its manual has it; give it")
        if model != CUSTOM and value is not None:
            raise ValueError(f"'{key}' is for 'model: {CUSTOM}'; leave it out, {model} has its own")
    position, velocity, effort = MODELS.get(model) or (float(value or 0.0) for value in given.values())
    return Ranges(position, velocity, effort, MAX_KP, MAX_KD)


def named(motion: tuple[float, ...]) -> str:
    """The ranges in words, with the models that have them."""
    names = "/".join(name for name, own in MODELS.items() if own == motion)
    return _text(motion) + (f" ({names})" if names else "")


def _text(motion: tuple[float, ...]) -> str:
    position, velocity, effort = motion
    return f"{position:.6g} rad, {velocity:.6g} rad/s, {effort:.6g} N*m"
