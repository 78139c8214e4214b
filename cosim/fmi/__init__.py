"""FMUs of other tools as parts of a co-simulation (FMI 2.0 and 3.0), and the systems of SSP that connect them."""

from cosim.fmi.part import FmuPart

__all__ = ["FmuPart"]
