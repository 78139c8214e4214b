"""The list `mechanism.elastic`: links that bend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from cosim.core.errors import InputError, did_you_mean
from cosim.core.types import param, params
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.elastic.beam import MOST_MODES, Beam, BeamSection, ModeCounts, constant
from cosim.mechanics.multibody.elastic.cross_sections import DIMENSIONS, Material, section_of
from cosim.mechanics.multibody.elastic.geometric_stiffness import GeometricStiffness
from cosim.mechanics.multibody.elastic.link import ElasticLink
from cosim.mechanics.multibody.elastic.rigid_elements import RigidElements, rigid_elements
from cosim.mechanics.multibody.elastic.table import read_elastic_table
from cosim.mechanics.multibody.mechanism import Link
from cosim.rig.reading.names import Reference
from cosim.rig.reading.schema import Reading, read
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.geometry import Origin
from cosim.rig.sections.user_code import read_shapes

AT = ("mechanism", "elastic")
EndName = Literal["clamped", "pinned", "free"]
POISSON_RATIO = 0.3
RIGID_IN_SHEAR = 1e12, 1e12  # N
# of a beam whose frame is fixed by its root, by its chord, or by the mean of its motion
ENDS_OF_BEAMS = (
    ("clamped", "free"),
    ("clamped", "pinned"),
    ("clamped", "clamped"),
    ("pinned", "pinned"),
    ("free", "free"),
)


@params
class CrossSectionKeys:
    shape: Literal["rectangle", "circle", "tube", "box"] = param()
    width: float | None = param(unit="m", above=0, default=None, doc="along y")
    height: float | None = param(unit="m", above=0, default=None, doc="along z")
    diameter: float | None = param(unit="m", above=0, default=None, doc="outer diameter")
    wall: float | None = param(unit="m", above=0, default=None)

    def __post_init__(self) -> None:
        wanted = DIMENSIONS[self.shape]
        for key in ("width", "height", "diameter", "wall"):
            given = getattr(self, key) is not None
            if given and key not in wanted:
                raise ValueError(f"a {self.shape} has no {key}; leave it out")
            if key in wanted and not given:
                raise ValueError(f"'{key}' is missing; a {self.shape} has {' and '.join(wanted)}")
        if self.wall is not None and 2.0 * self.wall >= min(d for d in self._outer if d is not None):
            raise ValueError(f"the wall of {self.wall:g} m leaves no hollow; make it thinner or choose a solid shape")

    @property
    def _outer(self) -> tuple[float | None, ...]:
        return self.width, self.height, self.diameter

    @property
    def dimensions(self) -> dict[str, float]:
        """By name [m]"""
        return {key: getattr(self, key) for key in DIMENSIONS[self.shape]}


@params
class StiffnessKeys:
    mass: float = param(unit="kg/m", above=0, doc="per length")
    EI: tuple[float, float] = param(unit="N*m^2", above=0, doc="about y, about z")
    inertia: tuple[float, float, float] = param(unit="kg*m", min=0, default=(0.0, 0.0, 0.0), doc="about x, y, z")
    EA: float = param(unit="N", above=0, default=1e12)
    GJ: float = param(unit="N*m^2", above=0, default=1e12)
    kGA: tuple[float, float] = param(unit="N", above=0, default=RIGID_IN_SHEAR, doc="for forces along y, along z")

    def __post_init__(self) -> None:
        smallest, middle, largest = sorted(self.inertia)
        if largest > (smallest + middle) * (1.0 + 1e-9):
            raise ValueError(
                f"inertia is impossible: {largest:g} kg*m exceeds the sum of the others; of a thin section that about x"
                " is the sum of those about y and z"
            )


@params
class BeamKeys:
    length: float = param(unit="m", above=0)
    modes: ModeCounts = param()
    section: CrossSectionKeys | None = param(default=None)
    tip_section: CrossSectionKeys | None = param(default=None)
    density: float | None = param(unit="kg/m^3", above=0, default=None)
    youngs_modulus: float | None = param(unit="Pa", above=0, default=None)
    poisson_ratio: float = param(min=0, max=0.5, default=POISSON_RATIO)
    stiffness: StiffnessKeys | None = param(default=None)
    ends: tuple[EndName, EndName] = param(default=("clamped", "free"))
    tip_mass: float = param(unit="kg", min=0, default=0.0)
    tip_inertia: float = param(unit="kg*m^2", min=0, default=0.0)
    theory: Literal["euler_bernoulli", "timoshenko"] = param(default="euler_bernoulli")
    damping_ratio: float = param(min=0, max=1, default=0.0)
    stiffening: bool = param(default=True)
    rigid_elements: int | None = param(min=1, max=200, default=None, doc="in place of modes, for comparison")

    def __post_init__(self) -> None:
        of_material = {"section": self.section, "density": self.density, "youngs_modulus": self.youngs_modulus}
        given = [key for key, value in of_material.items() if value is not None]
        if self.stiffness is not None and given:
            raise ValueError(f"'stiffness' and {' and '.join(map(repr, given))} are given; keep one of both ways")
        if self.stiffness is None and len(given) < len(of_material):
            missing = " and ".join(repr(key) for key in of_material if key not in given)
            raise ValueError(f"{missing} missing; a beam has section, density and youngs_modulus, or 'stiffness'")
        if self.stiffness is not None and self.poisson_ratio != POISSON_RATIO:
            raise ValueError("poisson_ratio is of the material of 'section'; with 'stiffness' take it out")
        if self.stiffness is not None and self.theory != "timoshenko" and self.stiffness.kGA != RIGID_IN_SHEAR:
            raise ValueError("stiffness.kGA is for 'theory: timoshenko'; take that, or take kGA out")
        if self.tip_section is not None and self.section is None:
            raise ValueError("tip_section needs 'section'; with 'stiffness' the beam is the same along its length")
        if self.tip_section is not None and self.section is not None and self.tip_section.shape != self.section.shape:
            raise ValueError("tip_section must have the shape of section")
        if self.ends not in ENDS_OF_BEAMS:
            known = ", ".join(f"[{root}, {tip}]" for root, tip in ENDS_OF_BEAMS)
            raise ValueError(f"ends [{', '.join(self.ends)}] leave the beam without a frame; they may be {known}")
        if self.modes.twist and self.stiffness is not None and not self.stiffness.inertia[0]:
            raise ValueError("modes of twist need stiffness.inertia about x")

    def beam(self) -> Beam:
        return Beam(
            self.length,
            self._section(),
            self.modes,
            self.ends,
            self.tip_mass,
            self.tip_inertia,
            self.theory == "timoshenko",
            self.stiffening,
            self.damping_ratio,
        )

    def _section(self) -> BeamSection:
        if self.stiffness is not None:
            s = self.stiffness
            x, y, z = map(constant, s.inertia)
            (about_y, about_z), (along_y, along_z) = map(constant, s.EI), map(constant, s.kGA)
            bending, shear = (about_y, about_z), (along_y, along_z)
            return BeamSection(constant(s.mass), (x, y, z), constant(s.EA), constant(s.GJ), bending, shear)
        assert self.section is not None and self.density is not None and self.youngs_modulus is not None
        material = Material(self.density, self.youngs_modulus, self.poisson_ratio)
        tip = self.tip_section or self.section
        return section_of(self.section.shape, self.section.dimensions, tip.dimensions, self.length, material)


@params
class TableKeys:
    file: str = param(doc=".npz or .json")
    damping_ratio: float = param(min=0, max=1, default=0.0)
    mass: float | None = param(unit="kg", above=0, default=None, doc="compared with the nodes' mass")


@params
class LoadKeys:
    x: str | None = param(default=None)
    y: str | None = param(default=None)
    z: str | None = param(default=None)


@params
class StiffeningKeys:
    acceleration: LoadKeys = param(default=LoadKeys())
    spin: LoadKeys = param(default=LoadKeys())
    force: dict | None = param(default=None)


@params
class FiniteElementKeys:
    mass: str = param(doc="file of the mass matrix")
    stiffness: str = param(doc="file of the stiffness matrix")
    nodes: str = param(doc="file of the nodes")
    root: tuple[int, ...] = param(doc="nodes that the frame of the link is fixed to")
    interfaces: dict | None = param(default=None)
    modes: int = param(min=1, max=MOST_MODES, default=6)
    vibrations: int | None = param(min=1, default=None)
    damping_ratio: float = param(min=0, max=1, default=0.0)
    held: tuple[str, ...] = param(default=())
    stiffening: StiffeningKeys = param(default=StiffeningKeys())
    total_mass: float | None = param(unit="kg", above=0, default=None)


@params
class ShapesKeys:
    type: str = param(doc="a path ending in `.py`, or an entry point of the group `cosim.shapes`")
    params: dict | None = param(default=None)


@params
class ElasticKeys:
    link: Reference = param()
    origin: Origin = param(default=Origin())
    beam: BeamKeys | None = param(default=None)
    table: TableKeys | None = param(default=None)
    finite_elements: FiniteElementKeys | None = param(default=None)
    shapes: ShapesKeys | None = param(default=None)
    initial: Literal["straight", "equilibrium"] = param(default="straight")

    def __post_init__(self) -> None:
        if not self._given:
            raise ValueError(f"the modes are missing; give one of {', '.join(SOURCES)}")
        if len(self._given) > 1:
            raise ValueError(f"{' and '.join(self._given)} are given; keep one of them")
        if self.in_equilibrium and self.beam is not None and self.beam.rigid_elements is not None:
            raise ValueError("a beam of rigid_elements starts straight; take out 'initial'")

    @property
    def _given(self) -> list[str]:
        return [source for source in SOURCES if getattr(self, source) is not None]

    @property
    def in_equilibrium(self) -> bool:
        return self.initial == "equilibrium"

    @property
    def source(self) -> str:
        """Where the modes come from, a key of `SOURCES`."""
        return self._given[0]


def with_elastic(
    links: Sequence[Link], items: Sequence[YamlValue], ground: str, reading: Reading, findings: Diagnostics
) -> list[Link]:
    """The links, with the listed ones made elastic; errors are recorded."""
    found = {link.name: link for link in links}
    bent: dict[str, Link] = {}
    for i, data in enumerate(items):
        path = (*AT, i)
        keys = read(ElasticKeys, data, path, reading)
        if keys is None:
            continue
        link = found.get(keys.link)
        if link is None or keys.link == ground:
            what = "is the ground; name another one" if link else f"does not exist{did_you_mean(keys.link, found)}"
            reading.fail((*path, "link"), f"link '{keys.link}' {what}")
        elif link.name in bent:
            reading.fail((*path, "link"), f"link '{keys.link}' is elastic already; keep one of both")
        else:
            bent[link.name] = _bent(link, keys, path, reading, findings)
    for link in links:
        if (of := link.name.partition("@")[0]) != link.name and of in bent:
            findings.error(
                f"link '{link.name}': '{of}@' begins names of parts of the elastic link; rename it", link.place
            )
    return [bent.get(link.name, link) for link in links]


def _bent(link: Link, keys: ElasticKeys, path: tuple, reading: Reading, findings: Diagnostics) -> Link:
    """The link with its modes, as it is after an error."""
    elastic = _modes_of(keys, (*path, keys.source), reading)
    if elastic is None:
        return link
    if isinstance(elastic, ElasticLink):
        elastic = replace(elastic, in_equilibrium=keys.in_equilibrium)
    if link.inertial is not None:
        source = keys.source.replace("_", " ")
        what = f"link '{link.name}': its mass of {link.inertial.mass:.4g} kg is replaced by the mass of its {source},"
        findings.note(f"{what} {elastic.mass:.4g} kg", reading.place(path))
    return replace(link, inertial=None, elastic=elastic, elastic_frame=keys.origin.pose)


def _modes_of(keys: ElasticKeys, path: tuple, reading: Reading) -> ElasticLink | RigidElements | None:
    """None after an error."""
    try:
        return SOURCES[keys.source](getattr(keys, keys.source), path, reading)
    except InputError as error:
        return reading.fail(path, f"{error.place}: {error.what}" if error.place else error.what)


def _of_beam(keys: BeamKeys, path: tuple, reading: Reading) -> ElasticLink | RigidElements:
    beam, count = keys.beam(), keys.rigid_elements
    return beam.link() if count is None else rigid_elements(beam, count)


def _of_table(keys: TableKeys, path: tuple, reading: Reading) -> ElasticLink | None:
    file = reading.file(keys.file, (*path, "file"))
    return None if file is None else read_elastic_table(file, keys.damping_ratio, keys.mass)


def _of_finite_elements(keys: FiniteElementKeys, path: tuple, reading: Reading) -> ElasticLink | None:
    from cosim.mechanics.multibody.elastic.finite_elements import FiniteElements  # imports scipy.sparse

    files = [reading.file(getattr(keys, key), (*path, key)) for key in ("mass", "stiffness", "nodes")]
    interfaces = keys.interfaces or {}
    for name, nodes in interfaces.items():
        if not isinstance(nodes, list) or not all(type(node) is int for node in nodes):
            return reading.fail((*path, "interfaces", name), "expected a list of numbers of nodes")
    mass, stiffness, nodes = files
    stiffening = _stiffening_of(keys.stiffening, (*path, "stiffening"), reading)
    if mass is None or stiffness is None or nodes is None or stiffening is None:
        return None
    further = keys.vibrations, keys.damping_ratio, keys.held, stiffening, keys.total_mass
    return FiniteElements(mass, stiffness, nodes, keys.root, interfaces, keys.modes, *further).link()


def _stiffening_of(keys: StiffeningKeys, path: tuple, reading: Reading) -> GeometricStiffness | None:
    """The files of each load; None after an error."""
    before = len(reading.errors)

    def files(load: LoadKeys | None, at: tuple) -> dict[str, Path]:
        given = {axis: name for axis, name in asdict(load).items() if name is not None} if load else {}
        found = {axis: reading.file(name, (*at, axis)) for axis, name in given.items()}
        return {axis: file for axis, file in found.items() if file is not None}

    force = {
        name: files(read(LoadKeys, data, (*path, "force", name), reading), (*path, "force", name))
        for name, data in (keys.force or {}).items()
    }
    made = GeometricStiffness(
        files(keys.acceleration, (*path, "acceleration")), files(keys.spin, (*path, "spin")), force
    )
    return made if len(reading.errors) == before else None


def _of_shapes(keys: ShapesKeys, path: tuple, reading: Reading) -> ElasticLink | None:
    shapes = read_shapes(keys.type, keys.params, path, reading)
    return None if shapes is None else shapes.link()


# where the modes of a link come from
SOURCES: dict[str, Callable[[Any, tuple, Reading], ElasticLink | RigidElements | None]] = {
    "beam": _of_beam,
    "table": _of_table,
    "finite_elements": _of_finite_elements,
    "shapes": _of_shapes,
}
