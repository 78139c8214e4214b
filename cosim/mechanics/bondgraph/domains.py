"""The domains of power: units of their efforts and flows, and of what elements and transducers need."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Domain:
    """Units of effort, flow, displacement ∫f dt and momentum ∫e dt, and of the values of I, C and R.

    In the thermal domain the effort is a temperature difference and the flow a heat flow, which is a power itself: the
    product of both is none, a C stores its displacement, and an R loses nothing. In the domain of signals the effort is
    a state without unit and the flow its rate: neither has power.
    """

    effort: str
    flow: str
    displacement: str
    momentum: str
    inertia: str
    stiffness: str
    resistance: str
    product_is_power: bool = True


DOMAINS: dict[str, Domain] = {
    "electrical": Domain("V", "A", "C", "V*s", "H", "V/C", "ohm"),
    "translational": Domain("N", "m/s", "m", "N*s", "kg", "N/m", "N*s/m"),
    "rotational": Domain("N*m", "rad/s", "rad", "N*m*s", "kg*m^2", "N*m/rad", "N*m*s/rad"),
    "hydraulic": Domain("Pa", "m^3/s", "m^3", "Pa*s", "kg/m^4", "Pa/m^3", "Pa*s/m^3"),
    "thermal": Domain("K", "W", "J", "K*s", "", "K/J", "K/W", product_is_power=False),
    "signal": Domain("1", "1/s", "1", "s", "", "1", "s", product_is_power=False),
}

# unit of a transformer's ratio m by the domains of its input and output: e_in = m e_out, f_out = m f_in
RATIOS: dict[tuple[str, str], str] = {
    **{(name, name): "1" for name in DOMAINS},
    ("rotational", "translational"): "m/rad",
    ("translational", "rotational"): "rad/m",
    ("translational", "hydraulic"): "m^2",
    ("hydraulic", "translational"): "Pa/N",
    ("rotational", "hydraulic"): "m^3/rad",
    ("hydraulic", "rotational"): "rad/m^3",
}

# unit of a gyrator's constant k: e_in = k f_out, e_out = k f_in
GYRATIONS: dict[tuple[str, str], str] = {
    ("electrical", "electrical"): "ohm",
    ("electrical", "rotational"): "N*m/A",
    ("rotational", "electrical"): "N*m/A",
    ("electrical", "translational"): "N/A",
    ("translational", "electrical"): "N/A",
}
