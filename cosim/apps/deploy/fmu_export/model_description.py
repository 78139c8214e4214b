"""`modelDescription.xml` of an FMU: its capabilities, units, variables and their structure, in FMI 2.0 and 3.0."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version as version_of
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from cosim.apps.deploy.fmu_export.variables import UnitVariable
from cosim.core.units import UNITS, si_exponents

LOG_CATEGORIES = {"logStatusError": "errors", "logStatusDiscard": "steps that cannot be taken"}
VARIABILITY = {"independent": "continuous", "output": "continuous", "parameter": "tunable", "input": "continuous"}
INITIAL = {"output": "calculated", "parameter": "exact"}


@dataclass(frozen=True)
class UnitOutline:
    """step, duration [s]: of its default experiment; steps: a sentence about those that it takes; fixed_step [s]: of
    which every step is a multiple, None for any length; follows_inputs: whether derivatives of inputs have an effect.
    """

    name: str
    about: str
    step: float
    duration: float
    steps: str
    fixed_step: float | None
    follows_inputs: bool = False

    @property
    def identifier(self) -> str:
        """A name of C, for the binary."""
        return re.sub(r"^(?=[0-9])|[^A-Za-z0-9_]", "_", self.name)


def description(version: int, outline: UnitOutline, variables: Sequence[UnitVariable], token: str) -> bytes:
    """The file for this major version of FMI; token: of the binary."""
    return _indented({2: _version_2, 3: _version_3}[version](outline, variables, token))


def _version_2(outline: UnitOutline, variables: Sequence[UnitVariable], token: str) -> Element:
    root = _root(outline, {"fmiVersion": "2.0", "guid": token})
    can = {"canNotUseMemoryManagementFunctions": "true", "canGetAndSetFMUstate": "true", "canSerializeFMUstate": "true"}
    can |= {"canInterpolateInputs": "true"} if outline.follows_inputs else {}
    SubElement(root, "CoSimulation", {"modelIdentifier": outline.identifier} | can | _steps(outline))
    _units(root, variables)
    _categories(root)
    _experiment(root, outline)
    # the time is a variable in FMI 3.0 only
    numbered = [each for each in enumerate(variables) if each[1].causality != "independent"]
    listed = SubElement(root, "ModelVariables")
    for reference, variable in numbered:
        item = SubElement(listed, "ScalarVariable", _declared(reference, variable))
        SubElement(item, "Real", _numbers(variable))
    structure = SubElement(root, "ModelStructure")
    places = {variable.name: str(k) for k, (_, variable) in enumerate(numbered, 1)}
    outputs, unknowns = (SubElement(structure, part) for part in ("Outputs", "InitialUnknowns"))
    for _, variable in (each for each in numbered if each[1].causality == "output"):
        own = {"index": places[variable.name]}
        SubElement(outputs, "Unknown", own | _dependencies(variable, places))
        SubElement(unknowns, "Unknown", own)
    return root


def _version_3(outline: UnitOutline, variables: Sequence[UnitVariable], token: str) -> Element:
    root = _root(outline, {"fmiVersion": "3.0", "instantiationToken": token})
    can = {"canGetAndSetFMUState": "true", "canSerializeFMUState": "true"}
    can |= {} if outline.fixed_step is None else {"fixedInternalStepSize": _shown(outline.fixed_step)}
    SubElement(root, "CoSimulation", {"modelIdentifier": outline.identifier} | can | _steps(outline))
    _units(root, variables)
    _categories(root)
    _experiment(root, outline)
    listed = SubElement(root, "ModelVariables")
    for reference, variable in enumerate(variables):
        item = SubElement(listed, "Float64", _declared(reference, variable) | _numbers(variable))
        if variable.length is not None:
            SubElement(item, "Dimension", start=str(variable.length))
    structure = SubElement(root, "ModelStructure")
    references = {variable.name: str(reference) for reference, variable in enumerate(variables)}
    outputs = [variable for variable in variables if variable.causality == "output"]
    for variable in outputs:
        own = {"valueReference": references[variable.name]}
        SubElement(structure, "Output", own | _dependencies(variable, references))
    for variable in outputs:
        SubElement(structure, "InitialUnknown", valueReference=references[variable.name])
    return root


def _dependencies(variable: UnitVariable, places: Mapping[str, str]) -> dict[str, str]:
    """Of an output on inputs. places: of the variables by name, as this version of FMI numbers them."""
    return {"dependencies": " ".join(places[name] for name in variable.depends_on)}


def _steps(outline: UnitOutline) -> dict[str, str]:
    return {"canHandleVariableCommunicationStepSize": "true"} if outline.fixed_step is None else {}


def _root(outline: UnitOutline, version: Mapping[str, str]) -> Element:
    about = {"description": outline.about} if outline.about else {}
    tool = {"generationTool": f"cosim {version_of('cosim')}", "variableNamingConvention": "flat"}
    return Element("fmiModelDescription", dict(version) | {"modelName": outline.name} | about | tool)


def _units(root: Element, variables: Sequence[UnitVariable]) -> None:
    names = dict.fromkeys(variable.unit for variable in variables if variable.unit in UNITS and variable.unit != "1")
    definitions = SubElement(root, "UnitDefinitions")
    for name in names:
        unit = SubElement(definitions, "Unit", name=name)
        exponents = si_exponents(name)
        if exponents is None:  # a quantity that the base units do not have
            continue
        base = {base: str(power) for base, power in exponents.items()}
        factor = UNITS[name][1]
        base |= {"factor": _shown(factor)} if factor != 1.0 else {}
        base |= {"offset": "273.15"} if UNITS[name][0] == "degC" else {}
        SubElement(unit, "BaseUnit", base)


def _categories(root: Element) -> None:
    categories = SubElement(root, "LogCategories")
    for name, about in LOG_CATEGORIES.items():
        SubElement(categories, "Category", name=name, description=about)


def _experiment(root: Element, outline: UnitOutline) -> None:
    times = {"startTime": "0.0", "stopTime": _shown(outline.duration), "stepSize": _shown(outline.step)}
    SubElement(root, "DefaultExperiment", times)


def _declared(reference: int, variable: UnitVariable) -> dict[str, str]:
    found = {"name": variable.name, "valueReference": str(reference)}
    found |= {"description": variable.about} if variable.about else {}
    found |= {"causality": variable.causality, "variability": VARIABILITY[variable.causality]}
    return found | ({"initial": INITIAL[variable.causality]} if variable.causality in INITIAL else {})


def _numbers(variable: UnitVariable) -> dict[str, str]:
    found = {"unit": variable.unit} if variable.unit in UNITS and variable.unit != "1" else {}
    found |= {"min": _shown(variable.least)} if math.isfinite(variable.least) else {}
    found |= {"max": _shown(variable.greatest)} if math.isfinite(variable.greatest) else {}
    start = " ".join([_shown(variable.start)] * variable.size)
    return found | ({"start": start} if variable.can_be_set else {})


def _shown(value: float) -> str:
    """A number of XML Schema, exact to the bit."""
    return repr(float(value)) if math.isfinite(value) else {True: "INF", False: "-INF"}[value > 0.0]


def _indented(root: Element) -> bytes:
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"
