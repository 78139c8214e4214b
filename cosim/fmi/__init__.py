"""FMUs of other tools as parts of a co-simulation (FMI 2.0 and 3.0), and the systems of SSP that connect them."""

from cosim.fmi.fmu_system import FmuSystem, SystemPart, SystemWire
from cosim.fmi.part import FmuPart
from cosim.fmi.system_structure import read_system
from cosim.fmi.variables import InUnitOfFmu

__all__ = ["FmuPart", "FmuSystem", "InUnitOfFmu", "SystemPart", "SystemWire", "read_system"]
