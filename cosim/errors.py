"""The errors that a program catches: `InputError` where its input is wrong, `RunError` where a run failed."""

from cosim.core.errors import CosimError, InputError, InputErrors, RunError, SourceLocation

__all__ = ["CosimError", "InputError", "InputErrors", "RunError", "SourceLocation"]
