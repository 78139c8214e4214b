"""Whole files of code: a header with names, units and the order of the joints, and a function per component."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cosim.apps.derive.equations.code import operations_of, written
from cosim.apps.derive.equations.components import Derivation, EquationTerm
from cosim.apps.derive.equations.header import Element, header
from cosim.apps.derive.equations.languages import MATLAB, PYTHON, C, Identifiers, Language, matlab_name
from cosim.apps.derive.equations.parameters import SymbolicParameter
from cosim.core.types import Numeric


@dataclass(frozen=True)
class CodeModel:
    """What a file of code has. inputs: casadi columns, `t` a scalar; members: name of a list -> names of the elements
    of a vector; header: its lines, from how an element of a vector is written; example: a call."""

    name: str
    inputs: Mapping[str, Numeric]
    functions: Sequence[EquationTerm]
    parameters: Sequence[SymbolicParameter]
    members: Mapping[str, Sequence[str]]
    header: Callable[[Element], list[str]]
    example: str


def file_lines(d: Derivation, to: str, file: Path | None) -> list[str]:
    """A file of the components of a mechanism in C, Python or MATLAB; functions of MATLAB take its name.

    Raises InputError for an operation that the language does not have.
    """
    return code_lines(_model(d), to, file)


def code_lines(model: CodeModel, to: str, file: Path | None) -> list[str]:
    """As `file_lines`, of any functions."""
    return WRITERS[to](model, matlab_name(model.name if file is None else file.stem))


def _model(d: Derivation) -> CodeModel:
    shown = d.dynamics[0]
    example = f"{function_names(d)[shown.name]}({', '.join(shown.arguments)})"
    joints = {"joints": d.model.dof_names}
    return CodeModel(d.name, d.inputs, d.everything, d.parameters, joints, partial(header, d), example)


@dataclass(frozen=True)
class CodeFunction:
    """The function of a component: what its comment has, and the lines that set the elements of `out`."""

    name: str
    component: EquationTerm
    about: str
    count: str
    body: list[str]


def _functions(d: CodeModel, language: Language) -> tuple[list[CodeFunction], list[list[str]]]:
    """(of all components, the helpers that they need)."""
    found, helpers = list[CodeFunction](), set[str]()
    for c, name in zip(d.functions, _names(d.functions).values(), strict=True):
        shape = " x ".join(map(str, c.shape))
        body, needed = written({a: d.inputs[a] for a in c.arguments}, c.entries, "out", language)
        helpers |= needed
        about = language.commented(f"{c.letter} ({shape}): {c.about}.")
        found.append(
            CodeFunction(name, c, about, f"{operations_of([d.inputs[a] for a in c.arguments], c.entries)}.", body)
        )
    return found, [language.helpers[name].splitlines() for name in sorted(helpers)]


def function_names(d: Derivation) -> dict[str, str]:
    """Of the functions in Python and MATLAB, by component."""
    return _names(d.everything)


def _names(functions: Sequence[EquationTerm]) -> dict[str, str]:
    identifiers = Identifiers()
    return {c.name: identifiers.new(c.name) for c in functions}


def _header(d: CodeModel, language: Language) -> list[str]:
    return [language.commented(line) for line in d.header(language.element)]


def c_function(d: Derivation, component: str) -> str:
    """The name of the function of a component in the file in C."""
    return f"{_prefix(d.name)}_{function_names(d)[component]}"


def _prefix(name: str) -> str:
    return Identifiers().new(name)


def _c(d: CodeModel, stem: str) -> list[str]:
    sizes = {key: column.numel() for key, column in d.inputs.items()}
    prefix, lines = _prefix(d.name), list[str]()
    functions, helpers = _functions(d, C)
    for f in functions:
        c = f.component
        given = ", ".join("double t" if a == "t" else f"const double {a}[{max(sizes[a], 1)}]" for a in c.arguments)
        size = max(c.entries.numel(), 1)
        lines += [
            "", f"/* {f.about}", f" * {f.count} */",
            f"void {prefix}_{f.name}({given}{', ' * bool(given)}double out[{size}])",
            "{", *(f"    (void){a};" for a in _unused(c, d)), *(f"    {line}" for line in f.body), "}",
        ]  # fmt: skip
    values = ", ".join(C.number(p.value) for p in d.parameters)
    table_of_p = f"const double {prefix}_parameters[{len(d.parameters)}]"
    places = ", ".join(f"{prefix}_p_{p.name}" for p in d.parameters)
    parameters = [
        "", "/* p: the values of the parameters, and the place of each */",
        f"{table_of_p} = {{{values}}};", f"enum {{{places}}};",
    ]  # fmt: skip
    return [
        "/*", *(f" * {line}".rstrip() for line in _header(d, C)), " */", "", "#include <math.h>",
        *(parameters if d.parameters else []),
        *(line for helper in helpers for line in ("", *helper)),
        *lines,
    ]  # fmt: skip


def _python(d: CodeModel, stem: str) -> list[str]:
    lines = list[str]()
    functions, helpers = _functions(d, PYTHON)
    for f in functions:
        c = f.component
        given = ", ".join("p=PARAMETERS" if a == "p" else a for a in c.arguments)
        rows = f"[out[{c.shape[-1]} * i:{c.shape[-1]} * (i + 1)] for i in range({c.shape[0]})]"
        lines += [
            "", "", f"def {f.name}({given}):",
            f'    """{f.about}', "", f'    {f.count}"""',
            f"    out = [0.0] * {c.entries.numel()}", *(f"    {line}" for line in f.body),
            f"    return {rows if len(c.shape) == 2 else 'out'}",
        ]  # fmt: skip
    values = [f"    {p.value!r},  # {p.name}" for p in d.parameters]
    index = {p.name: k for k, p in enumerate(d.parameters)}
    return [
        '"""', *_header(d, PYTHON), '"""', "", "import math",
        "",
        *(f"{name.upper()} = {list(members)!r}" for name, members in d.members.items()),
        *(["PARAMETERS = [", *values, "]", f"INDEX = {index!r}  # of PARAMETERS"] if d.parameters else []),
        *(line for helper in helpers for line in ("", "", *helper)),
        *lines,
    ]  # fmt: skip


def _matlab(d: CodeModel, stem: str) -> list[str]:
    lines, handles = list[str](), list[str]()
    functions, helpers = _functions(d, MATLAB)
    for f in functions:
        c = f.component
        given = ", ".join(c.arguments)
        n, m = c.shape if len(c.shape) == 2 else (c.shape[0], 1)
        shaped = [f"  out = reshape(out, {m}, {n})';"] if len(c.shape) == 2 else []
        handles.append(f"  model.{f.name} = @{f.name};")
        default = ["  if nargin < " + str(len(c.arguments)), "    p = default_parameters();", "  end"]
        lines += [
            "", f"function out = {f.name}({given})", f"  % {f.about}", f"  % {f.count}",
            *(default if "p" in c.arguments else []),
            f"  out = zeros({n * m}, 1);", *(f"  {line}" for line in f.body), *shaped, "end",
        ]  # fmt: skip
    use = [f"model = {stem}() has a function for each component: model.{d.example}"]
    use += ["p is model.parameters where it is left out."] * bool(d.parameters)
    members = [f"  model.{name} = {{{_quoted(names)}}};" for name, names in d.members.items()]
    values = "; ".join(MATLAB.number(p.value) for p in d.parameters)
    return [
        f"function model = {stem}()",
        *(f"  % {line}".rstrip() for line in (*use, "", *_header(d, MATLAB))),
        *members,
        *(["  model.parameters = default_parameters();"] if d.parameters else []),
        *(f"  model.index.{p.name} = {k};" for k, p in enumerate(d.parameters, 1)),
        *handles, "end",
        *(["", "function p = default_parameters()", f"  p = [{values}];", "end"] if d.parameters else []),
        *lines,
        *(line for helper in helpers for line in ("", *helper)),
    ]  # fmt: skip


def _quoted(names: Sequence[str]) -> str:
    """As strings of MATLAB."""
    return ", ".join("'" + " ".join(name.replace("'", "''").splitlines()) + "'" for name in names)


def _unused(c: EquationTerm, d: CodeModel) -> list[str]:
    import casadi

    used = casadi.symvar(c.entries)
    hashes = {symbol.element_hash() for symbol in used}
    return [a for a in c.arguments if not any(x.element_hash() in hashes for x in d.inputs[a].elements())]


WRITERS: Mapping[str, Callable[[CodeModel, str], list[str]]] = {"c": _c, "python": _python, "matlab": _matlab}
