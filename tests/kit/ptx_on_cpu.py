"""PTX as machine code of this processor: each instruction of the text becomes LLVM IR of the meaning that the manual of
the PTX ISA gives it. Of the instructions, those that the compiler emits; others raise KeyError.

A function gets pointers to its result and its parameters; a kernel also the numbers of its thread.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from cosim.core.compile.object_code import llvm, object_code, target_machine
from tests.kit.linked_code import linked

_SPECIAL = ("%ctaid.x", "%ntid.x", "%tid.x")
_WHOLE = {f"{sign}{bits}": f"i{bits}" for sign in "sub" for bits in (8, 16, 32, 64)}
_TYPES = {**_WHOLE, "f64": "double", "f32": "float", "pred": "i1"}
_BITS = {"double": "i64", "float": "i32"}
_ORDER = {
    **{name: f"o{name}" for name in ("lt", "le", "gt", "ge", "eq")},
    "ne": "one",
    **{f"{name}u": f"u{name}" for name in ("lt", "le", "gt", "ge", "eq", "ne")},
}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "mul": "mul"}
_OF_FLOATS = {"abs": "fabs", "sqrt": "sqrt", "neg": "", "min": "minnum", "max": "maxnum", "fma": "fma", "ex2": "exp2"}
_INTRINSICS = """
declare double @llvm.fabs.f64(double)
declare float @llvm.fabs.f32(float)
declare float @llvm.rint.f32(float)
declare float @llvm.exp2.f32(float)
declare double @llvm.sqrt.f64(double)
declare double @llvm.rint.f64(double)
declare double @llvm.floor.f64(double)
declare double @llvm.ceil.f64(double)
declare double @llvm.trunc.f64(double)
declare double @llvm.minnum.f64(double, double)
declare double @llvm.maxnum.f64(double, double)
declare double @llvm.copysign.f64(double, double)
declare double @llvm.fma.f64(double, double, double)
declare i32 @llvm.fptosi.sat.i32.f64(double)
declare i64 @llvm.fptosi.sat.i64.f64(double)
declare i32 @llvm.fptoui.sat.i32.f64(double)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i32 @llvm.ctlz.i32(i32, i1)
declare i32 @llvm.fshl.i32(i32, i32, i32)
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.umin.i32(i32, i32)
"""


class PtxProgram:
    """The kernels of a PTX text."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"//.*", "", text)
        functions = re.findall(r"^(\.visible \.entry|\.func) ([^{;]*)(?:;|\n\{\n(.*?)^\}$)", text, re.M | re.S)
        self.kernels = {}
        lines = [_INTRINSICS, *map(_constant, re.findall(r"^\.global (.*);$", text, re.M))]
        for kind, head, body in functions:
            if body:
                function = _Function(kind == ".visible .entry", head, body)
                lines.append(function.text)
                if function.is_kernel:
                    self.kernels[function.name] = function
        self.ir = "\n".join(lines)

    @cached_property
    def _code(self) -> bytes:
        return object_code(_in_registers(self.ir))

    def kernel(self, name: str) -> Callable[..., None]:
        """The function of addresses of the arguments, then block, threads per block, thread."""
        return linked([self._code], name)

    def launch(self, name: str) -> Callable[[int, int, Sequence[int]], None]:
        """The function that runs so many blocks of so many threads, one after the other."""
        run = self.kernel(name)

        def launch(blocks: int, threads: int, arguments: Sequence[int]) -> None:
            for block, thread in itertools.product(range(blocks), range(threads)):
                run(*arguments, block, threads, thread)

        return launch


def _in_registers(ir: str) -> str:
    """The same with values instead of registers in memory, which LLVM compiles much faster."""
    module, machine = llvm().parse_assembly(ir), target_machine()
    builder = llvm().create_pass_builder(machine, llvm().create_pipeline_tuning_options(speed_level=0))
    passes = llvm().create_new_function_pass_manager()
    passes.add_sroa_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    return str(module)


def _constant(text: str) -> str:
    found = re.fullmatch(r"\.align (\d+) \.b8 ([\w$]+)(?:\[(\d+)\])?(?: = \{(.*)\})?", text)
    assert found is not None, text[:80]
    align, name, size, values = found.groups("0")
    given = [int(value) for value in values.split(",")][: int(size)]
    listed = ", ".join(f"i8 {value}" for value in given + [0] * (int(size) - len(given)))
    return f'@"{name}" = internal constant [{size} x i8] [{listed}], align {align}'


class _Function:
    def __init__(self, is_kernel: bool, head: str, body: str) -> None:
        self.is_kernel, self.lines, self.fresh = is_kernel, [], itertools.count()
        found = re.match(r"\s*(?:\(\.param [^)]*\)\s*)?([\w$]+)", head)
        assert found is not None, head
        self.name = found[1]
        self.parameters = re.findall(rf"{re.escape(self.name)}_param_\d+", head)
        self.places = {name: f"%P{k}" for k, name in enumerate(self.parameters)} | {"func_retval0": "%result"}
        self.registers: dict[str, str] = {"carry": "i1"}  # name -> type
        self.allocations = ["  %carry = alloca i1"]
        for part in re.split(r"[;\n]", body):
            if statement := re.sub(r"^[{}\s]+", "", part).strip():  # blocks have no meaning of their own
                self._statement(statement)
        arguments = ["ptr %result"] * (not is_kernel) + [f"ptr %P{k}" for k in range(len(self.parameters))]
        arguments += [f'i64 %"{name}"' for name in _SPECIAL] * is_kernel
        link = "" if is_kernel else "internal "
        self.text = "\n".join(
            [f'define {link}void @"{self.name}"({", ".join(arguments)}) nounwind {{', *self.allocations,
             *self.lines, "  unreachable", "}"]
        )  # fmt: skip

    # --- declarations ---

    def _statement(self, text: str) -> None:
        if text.endswith(":"):
            self.lines += [f'  br label %"{text[:-1]}"', f'"{text[:-1]}":']
        elif text.startswith("."):
            self._declare(text)
        else:
            self._instruction(text)

    def _declare(self, line: str) -> None:
        kind, rest = line.split(None, 1)
        if kind == ".reg":
            type_, names = rest.split(None, 1)
            for name in map(str.strip, names.split(",")):
                ranged = re.fullmatch(r"(%\w+)<(\d+)>", name)
                made = [f"{ranged[1]}{k}" for k in range(int(ranged[2]))] if ranged else [name]
                for each in made:
                    self._allocate(each, _BITS.get(_TYPES[type_[1:]], _TYPES[type_[1:]]))
        elif kind in (".local", ".param"):
            align, name, size = re.findall(r"(?:\.align (\d+) )?\.\w+\s+(\w+)(?:\[(\d+)\])?", rest)[0]
            self.allocations.append(f'  %"{name}.{next(self.fresh)}" = alloca [{size or 8} x i8], align {align or 8}')
            self.places[name] = self.allocations[-1].split()[0]
        else:
            assert kind == ".pragma", line

    def _allocate(self, name: str, type_: str) -> None:
        """A register; inline assembly declares its own again and again."""
        if name not in self.registers:
            self.allocations.append(f"  {_register(name)} = alloca {type_}")
        assert self.registers.setdefault(name, type_) == type_, name

    # --- values ---

    def _add(self, text: str) -> str:
        name = f"%v{next(self.fresh)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def _value(self, operand: str, type_: str) -> str:
        """An operand as a value of an LLVM type."""
        bits = _BITS.get(type_, type_)
        if operand in _SPECIAL:
            value = self._add(f'trunc i64 %"{operand}" to i32')
        elif operand in self.registers:
            own = self.registers[operand]
            value = self._add(f"load {own}, ptr {_register(operand)}")
            if own != bits:
                value = self._add(f"{'trunc' if int(own[1:]) > int(bits[1:]) else 'zext'} {own} {value} to {bits}")
        elif re.match(r"0[df][0-9A-F]", operand):
            value = str(int(operand[2:], 16))
        elif re.match(r"-?\d", operand):
            value = operand
        else:
            value = self._add(f"ptrtoint ptr {self._place(operand)} to i64")
        return value if bits == type_ else self._add(f"bitcast {bits} {value} to {type_}")

    def _set(self, operand: str, value: str, type_: str) -> None:
        """Store a value of an LLVM type in a register."""
        bits, own = _BITS.get(type_, type_), self.registers[operand]
        if bits != type_:
            value = self._add(f"bitcast {type_} {value} to {bits}")
        if own != bits:
            value = self._add(f"{'trunc' if int(bits[1:]) > int(own[1:]) else 'zext'} {bits} {value} to {own}")
        self.lines.append(f"  store {own} {value}, ptr {_register(operand)}")

    def _place(self, name: str) -> str:
        return self.places.get(name, f'@"{name}"')

    def _address(self, operand: str) -> str:
        """A pointer for [base+offset]."""
        base, offset = re.fullmatch(r"\[([%\w$]+)(?:\+?(-?\d+))?\]", operand).groups()  # type: ignore[union-attr]
        if base in self.registers:
            pointer = self._add(f"inttoptr i64 {self._value(base, 'i64')} to ptr")
        else:
            pointer = self._place(base)
        return self._add(f"getelementptr i8, ptr {pointer}, i64 {offset or 0}")

    # --- instructions ---

    def _instruction(self, text: str) -> None:
        if guarded := re.match(r"@(!?)(%p\d+)\s+(.*)", text):
            negated, predicate, text = guarded.groups()
            inside, skip = (f'%"{name}{next(self.fresh)}"' for name in ("inside", "skip"))
            jump = re.fullmatch(r"bra\s+(\S+)", text)
            taken, other = f'%"{jump[1]}"' if jump else inside, skip
            first, second = (other, taken) if negated else (taken, other)
            self.lines.append(f"  br i1 {self._value(predicate, 'i1')}, label {first}, label {second}")
            if not jump:
                self.lines.append(f"{inside[1:]}:")
                self._instruction(text)
                self.lines.append(f"  br label {skip}")
            self.lines.append(f"{skip[1:]}:")
            return
        name, _, rest = text.partition(" ") if " " in text else text.partition("\t")
        name, *kinds = name.strip().split(".")
        operands = [each.strip() for each in re.findall(r"\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[^,\s][^,]*", rest.strip())]
        getattr(self, f"_op_{name}", self._arithmetic(name))(kinds, *operands)

    def _arithmetic(self, name: str) -> Callable[..., None]:
        def op(kinds: list[str], target: str, *operands: str) -> None:
            type_ = _TYPES[kinds[-1]]
            values = [self._value(operand, type_) for operand in operands]
            if type_ in _BITS:
                result = self._float(name, kinds, type_, values)
            elif "cc" in kinds or name.endswith("c"):
                result = self._with_carry(name, kinds, type_, values)
            else:
                result = self._integer(name, kinds, type_, values)
            self._set(target, result, type_)

        return op

    def _upper_half(self, value: str) -> str:
        """What approximations leave of a double: the upper 32 bits."""
        bits = self._add(f"and i64 {self._add(f'bitcast double {value} to i64')}, {-1 << 32}")
        return self._add(f"bitcast i64 {bits} to double")

    def _float(self, name: str, kinds: list[str], type_: str, values: list[str]) -> str:
        if name in _FLOAT:
            return self._add(f"{_FLOAT[name]} {type_} {values[0]}, {values[1]}")
        if name in ("rcp", "rsqrt"):
            divisor = values[0] if name == "rcp" else self._add(f"call double @llvm.sqrt.f64(double {values[0]})")
            exact = self._add(f"fdiv {type_} 1.0, {divisor}")
            return self._upper_half(exact) if "approx" in kinds else exact
        if name == "neg":
            return self._add(f"fneg {type_} {values[0]}")
        if name == "copysign":  # the sign of the first on the second
            return self._add(f"call double @llvm.copysign.f64(double {values[1]}, double {values[0]})")
        typed = ", ".join(f"{type_} {value}" for value in values)
        return self._add(f"call {type_} @llvm.{_OF_FLOATS[name]}.f{(type_ == 'double' and 64) or 32}({typed})")

    def _integer(self, name: str, kinds: list[str], type_: str, values: list[str]) -> str:
        signed = kinds[-1][0] == "s"
        if name in ("mul", "mad") and kinds[0] == "hi":
            return self._high(type_, *values[:2])
        if name == "mad":
            return self._add(f"add {type_} {self._add(f'mul {type_} {values[0]}, {values[1]}')}, {values[2]}")
        if name in _INTEGER:
            return self._add(f"{_INTEGER[name]} {type_} {values[0]}, {values[1]}")
        if name in ("div", "rem"):
            return self._add(f"{'s' if signed else 'u'}{name} {type_} {values[0]}, {values[1]}")
        if name in ("min", "max"):
            call = f"@llvm.{'s' if signed else 'u'}{name}.{type_}({type_} {values[0]}, {type_} {values[1]})"
            return self._add(f"call {type_} {call}")
        if name == "not":
            return self._add(f"xor {type_} {values[0]}, -1")
        assert name == "neg", name
        return self._add(f"sub {type_} 0, {values[0]}")

    def _high(self, type_: str, a: str, b: str) -> str:
        """The upper half of a product of numbers without sign."""
        wide = f"i{2 * int(type_[1:])}"
        a, b = (self._add(f"zext {type_} {x} to {wide}") for x in (a, b))
        shifted = self._add(f"lshr {wide} {self._add(f'mul {wide} {a}, {b}')}, {type_[1:]}")
        return self._add(f"trunc {wide} {shifted} to {type_}")

    def _with_carry(self, name: str, kinds: list[str], type_: str, values: list[str]) -> str:
        """Sums and differences that set the carry (cc) or use it (a name that ends in c)."""
        wide = f"i{int(type_[1:]) + 2}"
        if name.startswith("mad"):
            a, b, c = values
            product = self._high(type_, a, b) if kinds[0] == "hi" else self._add(f"mul {type_} {a}, {b}")
            values = [product, c]
        a, b = (self._add(f"zext {type_} {value} to {wide}") for value in values)
        instruction = "sub" if name.startswith("sub") else "add"
        total = self._add(f"{instruction} {wide} {a}, {b}")
        if name in ("addc", "subc", "madc"):
            carry = self._add(f"zext i1 {self._add('load i1, ptr %carry')} to {wide}")
            total = self._add(f"{instruction} {wide} {total}, {carry}")
        if "cc" in kinds:
            over = self._add(f"trunc {wide} {self._add(f'lshr {wide} {total}, {type_[1:]}')} to i1")
            self.lines.append(f"  store i1 {over}, ptr %carry")
        return self._add(f"trunc {wide} {total} to {type_}")

    def _op_mul(self, kinds: list[str], target: str, a: str, b: str) -> None:
        if kinds[0] != "wide":
            return self._arithmetic("mul")(kinds, target, a, b)
        extend = "sext" if kinds[-1][0] == "s" else "zext"
        factors = [self._add(f"{extend} i32 {self._value(x, 'i32')} to i64") for x in (a, b)]
        return self._set(target, self._add(f"mul i64 {factors[0]}, {factors[1]}"), "i64")

    def _op_not(self, kinds: list[str], target: str, a: str) -> None:
        type_ = _TYPES[kinds[-1]]
        self._set(target, self._add(f"xor {type_} {self._value(a, type_)}, -1"), type_)

    def _shift(self, instruction: str, kinds: list[str], target: str, a: str, by: str) -> None:
        """A shift by more than the bits leaves none, or the sign."""
        type_, bits = _TYPES[kinds[-1]], int(kinds[-1][1:])
        amount = self._value(by, "i32")
        inside = self._add(f"icmp ult i32 {amount}, {bits}")
        last = self._add(f"select i1 {inside}, i32 {amount}, i32 {bits - 1}")
        wide = self._add(f"zext i32 {last} to i64") if bits == 64 else last
        shifted = self._add(f"{instruction} {type_} {self._value(a, type_)}, {wide}")
        if instruction != "ashr":
            shifted = self._add(f"select i1 {inside}, {type_} {shifted}, {type_} 0")
        self._set(target, shifted, type_)

    def _op_shl(self, kinds: list[str], *operands: str) -> None:
        self._shift("shl", kinds, *operands)

    def _op_shr(self, kinds: list[str], *operands: str) -> None:
        self._shift("ashr" if kinds[-1][0] == "s" else "lshr", kinds, *operands)

    def _op_shf(self, kinds: list[str], target: str, low: str, high: str, by: str) -> None:
        assert kinds == ["l", "wrap", "b32"], kinds
        values = ", ".join(f"i32 {self._value(each, 'i32')}" for each in (high, low, by))
        self._set(target, self._add(f"call i32 @llvm.fshl.i32({values})"), "i32")

    def _op_bfe(self, kinds: list[str], target: str, a: str, first: str, length: str) -> None:
        assert kinds == ["u32"], kinds
        shifted = self._add(f"lshr i32 {self._value(a, 'i32')}, {first}")
        self._set(target, self._add(f"and i32 {shifted}, {(1 << int(length)) - 1}"), "i32")

    def _op_clz(self, kinds: list[str], target: str, a: str) -> None:
        type_ = _TYPES[kinds[0]]
        self._set(target, self._add(f"call {type_} @llvm.ctlz.{type_}({type_} {self._value(a, type_)}, i1 0)"), type_)

    def _op_setp(self, kinds: list[str], target: str, a: str, b: str) -> None:
        type_ = _TYPES[kinds[-1]]
        values = [self._value(x, type_) for x in (a, b)]
        if type_ in _BITS:
            order = {"num": "ord", "nan": "uno"}.get(kinds[0]) or _ORDER[kinds[0]]
            result = self._add(f"fcmp {order} {type_} {values[0]}, {values[1]}")
        else:
            sign = "" if kinds[0] in ("eq", "ne") else "s" if kinds[-1][0] == "s" else "u"
            result = self._add(f"icmp {sign}{kinds[0]} {type_} {values[0]}, {values[1]}")
        self._set(target, result, "i1")

    def _op_selp(self, kinds: list[str], target: str, a: str, b: str, condition: str) -> None:
        type_ = _TYPES[kinds[-1]]
        first, second = (self._value(x, type_) for x in (a, b))
        chosen = self._add(f"select i1 {self._value(condition, 'i1')}, {type_} {first}, {type_} {second}")
        self._set(target, chosen, type_)

    def _op_mov(self, kinds: list[str], target: str, source: str) -> None:
        if target.startswith("{"):
            low, high = (name.strip() for name in target[1:-1].split(","))
            whole = self._value(source, "i64")
            self._set(low, whole, "i64")
            self._set(high, self._add(f"lshr i64 {whole}, 32"), "i64")
        elif source.startswith("{"):
            low, high = (self._value(name.strip(), "i32") for name in source[1:-1].split(","))
            low, high = (self._add(f"zext i32 {each} to i64") for each in (low, high))
            self._set(target, self._add(f"or i64 {low}, {self._add(f'shl i64 {high}, 32')}"), "i64")
        else:
            type_ = _TYPES[kinds[-1]]
            self._set(target, self._value(source, type_), type_)

    def _op_cvta(self, kinds: list[str], target: str, source: str) -> None:
        self._set(target, self._value(source, "i64"), "i64")

    def _op_cvt(self, kinds: list[str], target: str, source: str) -> None:
        to, of = kinds[-2:]
        types, value = (_TYPES[to], _TYPES[of]), self._value(source, _TYPES[of])
        rounding = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}.get(kinds[0])
        if rounding:
            value = self._add(f"call {types[1]} @llvm.{rounding}.{of}({types[1]} {value})")
        if types[0] == types[1]:
            result = value
        elif {*types} == {"double", "float"}:
            result = self._add(f"{'fpext' if to == 'f64' else 'fptrunc'} {types[1]} {value} to {types[0]}")
        elif of == "f64":
            signed = "s" if to[0] == "s" else "u"
            result = self._add(f"call {types[0]} @llvm.fpto{signed}i.sat.{types[0]}.f64(double {value})")
        elif to == "f64":
            result = self._add(f"{'si' if of[0] == 's' else 'ui'}tofp {types[1]} {value} to double")
        else:
            narrow = int(types[0][1:]) < int(types[1][1:])
            instruction = "trunc" if narrow else "sext" if of[0] == "s" else "zext"
            result = self._add(f"{instruction} {types[1]} {value} to {types[0]}")
        self._set(target, result, types[0])

    # --- memory, branches, calls ---

    def _op_ld(self, kinds: list[str], target: str, address: str) -> None:
        type_, pointer = _BITS.get(_TYPES[kinds[-1]], _TYPES[kinds[-1]]), self._address(address)
        for k, name in enumerate(target.strip("{}").split(",")):
            at = self._add(f"getelementptr {type_}, ptr {pointer}, i64 {k}")
            value = self._add(f"load {type_}, ptr {at}, align 1")
            if kinds[-1] == "s8":
                value, type_ = self._add(f"sext i8 {value} to i32"), "i32"
            self._set(name.strip(), value, type_)

    def _op_st(self, kinds: list[str], address: str, source: str) -> None:
        type_, pointer = _BITS.get(_TYPES[kinds[-1]], _TYPES[kinds[-1]]), self._address(address)
        for k, name in enumerate(source.strip("{}").split(",")):
            at = self._add(f"getelementptr {type_}, ptr {pointer}, i64 {k}")
            self.lines.append(f"  store {type_} {self._value(name.strip(), type_)}, ptr {at}, align 1")

    def _op_bra(self, kinds: list[str], label: str) -> None:
        self.lines += [f'  br label %"{label}"', f"after{next(self.fresh)}:"]

    def _op_ret(self, kinds: list[str]) -> None:
        self.lines += ["  ret void", f"after{next(self.fresh)}:"]

    def _op_call(self, kinds: list[str], *operands: str) -> None:
        result = operands[0][1:-1] if operands[0].startswith("(") else ""
        name, *arguments = operands[bool(result) :]
        passed = [self._place(each.strip()) for each in arguments[0][1:-1].split(",")] if arguments else []
        typed = ", ".join(f"ptr {each}" for each in [self._place(result) if result else "null", *passed])
        self.lines.append(f'  call void @"{name}"({typed})')


def _register(name: str) -> str:
    return f'%"R{name}"' if name != "carry" else "%carry"


def addresses(values: np.ndarray) -> list[int]:
    """Of the elements of an array."""
    return [values.ctypes.data + values.itemsize * k for k in range(len(values))]
