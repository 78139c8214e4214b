"""The domains of power: units of their efforts and flows, and of what elements and transducers need."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Domain:
    """Units of effort, flow, displacement ∫f dt and momentum ∫e dt, and of the values of I, C and R.

    In the thermal domain the effort is a temperature difference and the flow a heat flow, which is a power itself: the
    product of both is none, a C stores its displacement, and an R loses nothing. In the domain of signals the effort is
    a state without unit and the flow its rate: neither has power.

    A gas has two bonds: `pneumatic` with its pressure and mass flow, whose product is no power, and `enthalpy` with its
    temperature and the flow of enthalpy and heat (a pseudo bond graph: Karnopp, Margolis and Rosenberg, System
    Dynamics, chapter 12). That flow is the power (`flow_is_power`): a C stores its displacement, the internal energy; a
    source supplies its flow.
    """

    effort: str
    flow: str
    displacement: str
    momentum: str
    inertia: str
    stiffness: str
    resistance: str
    product_is_power: bool = True
    flow_is_power: bool = False

    @property
    def carries_power(self) -> bool:
        """Whether energies of its elements are counted."""
        return self.product_is_power or self.flow_is_power


DOMAINS: dict[str, Domain] = {
    "electrical": Domain("V", "A", "C", "V*s", "H", "V/C", "ohm"),
    "translational": Domain("N", "m/s", "m", "N*s", "kg", "N/m", "N*s/m"),
    "rotational": Domain("N*m", "rad/s", "rad", "N*m*s", "kg*m^2", "N*m/rad", "N*m*s/rad"),
    "hydraulic": Domain("Pa", "m^3/s", "m^3", "Pa*s", "kg/m^4", "Pa/m^3", "Pa*s/m^3"),
    "thermal": Domain("K", "W", "J", "K*s", "", "K/J", "K/W", product_is_power=False),
    "pneumatic": Domain("Pa", "kg/s", "kg", "Pa*s", "", "Pa/kg", "Pa*s/kg", product_is_power=False),
    "enthalpy": Domain("K", "W", "J", "K*s", "", "K/J", "K/W", product_is_power=False, flow_is_power=True),
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
