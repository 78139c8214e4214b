"""The table of operations: the LLVM IR of each casadi operation.

Every value is of type T, a double or a vector of doubles; conditions are i1 or a vector of i1.
"""

from __future__ import annotations

from functools import cache

# casadi name -> LLVM instruction on two floats
INSTRUCTIONS = {"ADD": "fadd", "SUB": "fsub", "MUL": "fmul", "DIV": "fdiv"}

# casadi name -> LLVM intrinsic of the same meaning (works on SIMD lanes)
INTRINSICS = {
    "SQRT": "llvm.sqrt",
    "FABS": "llvm.fabs",
    "FLOOR": "llvm.floor",
    "CEIL": "llvm.ceil",
    "COPYSIGN": "llvm.copysign",
}

# casadi name -> when its second operand is the result of two numbers. LLVM's own minimum and maximum leave the sign of
# zero to the machine
SELECTIONS = {"FMIN": "olt", "FMAX": "ogt"}

# casadi name -> function of the C library (called per lane)
LIBM = {
    "EXP": "exp",
    "LOG": "log",
    "POW": "pow",
    "CONSTPOW": "pow",
    "TAN": "tan",
    "ASIN": "asin",
    "ACOS": "acos",
    "ATAN": "atan",
    "ATAN2": "atan2",
    "SINH": "sinh",
    "COSH": "cosh",
    "TANH": "tanh",
    "ASINH": "asinh",
    "ACOSH": "acosh",
    "ATANH": "atanh",
    "ERF": "erf",
    "LOG1P": "log1p",
    "EXPM1": "expm1",
    "HYPOT": "hypot",
    "FMOD": "fmod",
    "REMAINDER": "remainder",
}

COMPARISONS = {"LT": "olt", "LE": "ole", "EQ": "oeq", "NE": "une"}

LOGIC = {"AND": "and", "OR": "or"}

# functions of the C library with two arguments
OF_TWO = frozenset({"pow", "atan2", "hypot", "fmod", "remainder"})

# nodes without an operation
LEAVES = frozenset({"INPUT", "RESULT", "CONST"})

# sum or difference -> (index of the operand that is the product, the fused operation): a b + c, a b − c, c − a b
FUSED = {"ADD": ((0, "MULADD"), (1, "MULADD")), "SUB": ((0, "MULSUB"), (1, "SUBMUL"))}

COMMUTATIVE = frozenset({"ADD", "MUL", "FMIN", "FMAX", "AND", "OR", "EQ", "NE", "HYPOT"})


@cache
def casadi_names() -> dict[int, str]:
    """casadi's operation numbers by name, without the OP_ prefix."""
    import casadi

    return {getattr(casadi, name): name[3:] for name in dir(casadi) if name.startswith("OP_")}
