"""An expression of casadi as lines of code, and the number of its operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cosim.apps.derive.equations.languages import ATOM, SIGN, Language
from cosim.apps.derive.tables import counted
from cosim.core.compile.operations import casadi_names
from cosim.core.errors import InputError
from cosim.core.types import Numeric

LONGEST_INLINE = 60  # characters of a value that is used once and gets no name

KINDS = {  # operation -> what it counts as; others are functions, a sign and a copy count nothing
    **dict.fromkeys(("ADD", "SUB"), "addition"),
    **dict.fromkeys(("MUL", "SQ", "TWICE"), "multiplication"),
    **dict.fromkeys(("DIV", "INV"), "division"),
    **dict.fromkeys(("INPUT", "CONST", "OUTPUT", "NEG", "ASSIGN"), ""),
}


@dataclass(frozen=True)
class Operations:
    """How often each is computed."""

    additions: int = 0
    multiplications: int = 0
    divisions: int = 0
    functions: int = 0

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        return self.additions, self.multiplications, self.divisions, self.functions

    @property
    def total(self) -> int:
        return sum(self.numbers)

    def __add__(self, other: Operations) -> Operations:
        return Operations(*(a + b for a, b in zip(self.numbers, other.numbers, strict=True)))

    def __str__(self) -> str:
        words = ("addition", "multiplication", "division", "function")
        shown = [counted(n, word) for n, word in zip(self.numbers, words, strict=True) if n or word in words[:2]]
        return ", ".join(shown)


@dataclass(frozen=True)
class Instruction:
    """One step of an expression: casadi's operation on earlier results; `value` of a constant."""

    name: str
    operands: tuple[int, ...]
    result: int
    value: float = 0.0


def instructions(inputs: Sequence[Numeric], entries: Numeric) -> list[Instruction]:
    """The steps of a column of expressions; results are numbered once each. An input is (which, element)."""
    import casadi

    f = casadi.Function("f", list(inputs), [entries], {"live_variables": False})
    names, found = casadi_names(), []
    for k in range(f.n_instructions()):
        name, operands, results = names[f.instruction_id(k)], f.instruction_input(k), f.instruction_output(k)
        if name == "OUTPUT":
            found.append(Instruction(name, tuple(operands), results[1]))
        else:
            value = f.instruction_constant(k) if name == "CONST" else 0.0
            found.append(Instruction(name, tuple(operands), results[0], value))
    return found


def operations_of(inputs: Sequence[Numeric], entries: Numeric) -> Operations:
    """What one evaluation computes."""
    kinds = Counter(KINDS.get(step.name, "function") for step in instructions(inputs, entries))
    return Operations(kinds["addition"], kinds["multiplication"], kinds["division"], kinds["function"])


def named_results(steps: Sequence[Instruction]) -> set[int]:
    """The results that get a name of their own: those used more than once, but constants, inputs and their signs."""
    uses, by_result = Counter[int](), {step.result: step for step in steps if step.name != "OUTPUT"}
    for step in steps:
        if step.name not in ("INPUT", "CONST"):
            uses.update(set(step.operands) if step.name != "SQ" else [step.operands[0]] * 2)

    def is_leaf(step: Instruction) -> bool:
        if step.name == "NEG":
            return is_leaf(by_result[step.operands[0]])
        return step.name in ("INPUT", "CONST")

    return {result for result, step in by_result.items() if uses[result] > 1 and not is_leaf(step)}


def written(
    inputs: Mapping[str, Numeric], entries: Numeric, result: str, language: Language
) -> tuple[list[str], set[str]]:
    """(the lines that set the elements of `result`, the operations that need a helper).

    Raises InputError for an operation that the language does not have.
    """
    steps = instructions(list(inputs.values()), entries)
    named, names = named_results(steps), list(inputs)
    text: dict[int, tuple[str, int]] = {}  # with its precedence
    lines: list[str] = []
    number = 0
    helpers: set[str] = set()
    for step in steps:
        match step.name:
            case "INPUT":
                which, element = step.operands
                text[step.result] = _element(names[which], element, language), ATOM
            case "CONST":
                constant = language.number(step.value)
                text[step.result] = constant, SIGN if constant.startswith("-") else ATOM
            case "OUTPUT":
                lines.append(language.set_result(result, step.result, text[step.operands[0]][0]))
            case _:
                here = _applied(step, text, language)
                helpers |= {step.name} & set(language.helpers)
                if step.result in named or len(here[0]) > LONGEST_INLINE:
                    name = f"x{(number := number + 1)}"
                    lines.append(language.assign.format(name, here[0]))
                    here = name, ATOM
                text[step.result] = here
    return lines, helpers


def _element(name: str, k: int, language: Language) -> str:
    return name if name == "t" else language.element(name, k)


def _applied(step: Instruction, text: Mapping[int, tuple[str, int]], language: Language) -> tuple[str, int]:
    operation = language.operations.get(step.name)
    if operation is None:
        raise InputError(
            f"the operation {step.name.lower()} does not exist in this language; choose another one", "--to"
        )
    operands = step.operands[: len(operation.needs)]
    parts = [
        text[operand][0] if text[operand][1] >= least else f"({text[operand][0]})"
        for operand, least in zip(operands, operation.needs, strict=True)
    ]
    return operation.template.format(*parts), operation.precedence
