"""A reader of formulas in LaTeX as sympy prints them: sums, products, fractions, powers, functions and cases."""

import re

import sympy

FUNCTIONS = {"sin", "cos", "tan", "tanh", "exp"}
RELATIONS = {">": sympy.Gt, "<": sympy.Lt, r"\geq": sympy.Ge, r"\leq": sympy.Le, r"\neq": sympy.Ne}
CASES = {
    r"\begin{cases}": r" \cases ",
    r"\end{cases}": r" \endcases ",
    r"& \text{for}\:": r" \for ",
    r"& \text{otherwise}": r" \otherwise ",
}
ENDS = {"+", "-", ")", "}", "&", "=", r"\\", r"\for", r"\otherwise", r"\endcases", *RELATIONS}
TOKEN = re.compile(
    r"\s*(?P<number>\d+\.?\d*(?:e[+-]?\d+)?)|\s*(?P<symbol>\\d?dot\{[a-z]\}_\{\d+\}|\\?[A-Za-z]+_\{(?:\\mathrm\{[^}]*\}|[\dxyz,]+)\})"
    r"|\s*(?P<word>\\[A-Za-z]+|\\\\)|\s*(?P<sign>[-+(){}^&=<>|])|\s*(?P<letter>[a-z])"
)


def equations(text, read=None):
    """(left side as text, formula) of each row of all `align*`; read: of a formula, in place of `formula`."""
    for block in re.findall(r"\\begin\{align\*\}\n(.*?)\n\\end\{align\*\}", text, re.DOTALL):
        for row in block.replace(" \\\\\n&\\quad", "").splitlines():  # without breaks of lines
            left, right = row.removesuffix(r" \\").split(" &= ")
            yield left, (read or formula)(right)


def formula(text):
    """A formula of sympy whose symbols are named as in LaTeX."""
    reader = _Reader(text)
    found = reader.sum()
    assert reader.next is None, f"{reader.next} is left of {text}"
    return found


class _Reader:
    def __init__(self, text):
        self._tokens, place = [], 0
        text = text.replace(r"\left", "").replace(r"\right", "").replace(r"\cdot", " ")
        for written, plain in CASES.items():
            text = text.replace(written, plain)
        while place < len(text.rstrip()):
            token = TOKEN.match(text, place)
            assert token, text[place:]
            kind = str(token.lastgroup)
            self._tokens.append((kind, token[kind]))
            place = token.end()

    @property
    def next(self):
        return self._tokens[0] if self._tokens else None

    def _is(self, *texts):
        return self.next is not None and self.next[1] in texts

    def take(self, text=None):
        kind, found = self._tokens.pop(0)
        assert text in (None, found), f"{found} in place of {text}"
        return kind, found

    def sum(self):
        total = -self._product_after("-") if self._is("-") else self.product()
        while self._is("+", "-"):
            total = total + self._product_after("+") if self._is("+") else total - self._product_after("-")
        return total

    def _product_after(self, sign):
        self.take(sign)
        return self.product()

    def product(self):
        found = self.factor()
        while self.next is not None and not self._closes_bars() and self.next[1] not in ENDS:
            found = found * self.factor()
        return found

    def factor(self):
        kind, text = self.take()
        if kind == "number":
            base = sympy.Float(text, 17) if "." in text or "e" in text else sympy.Integer(text)
        elif kind in ("symbol", "letter"):
            base = sympy.Symbol(text)
        elif text in ("(", "{"):
            base = self.sum()
            self.take({"(": ")", "{": "}"}[text])
        elif text == "|":
            base = sympy.Abs(self._braced())
            self.take("|")
        elif text == r"\pi":
            base = sympy.pi
        elif text == r"\cases":
            return self._cases()
        elif text == r"\frac":
            return self._braced() / self._braced()
        elif text == r"\sqrt":
            base = sympy.sqrt(self._braced())
        else:
            name = text.removeprefix("\\")
            assert name in FUNCTIONS, text
            power = self._power()
            self.take("{")
            argument = self.sum()
            self.take("}")
            return getattr(sympy, name)(argument) ** power
        return base ** self._power()

    def _cases(self):
        found = []
        while not self._is(r"\endcases"):
            value = self.sum()
            condition = sympy.true
            if self.take()[1] == r"\for":
                left = self.sum()
                condition = RELATIONS[self.take()[1]](left, self.sum())
            found.append((value, condition))
            if self._is("\\\\"):
                self.take()
        self.take()
        return sympy.Piecewise(*found)

    def _closes_bars(self):
        return self._is("|") and self._tokens[1:2] != [("sign", "{")]

    def _braced(self):
        self.take("{")
        found = self.sum()
        self.take("}")
        return found

    def _power(self):
        if not self._is("^"):
            return sympy.Integer(1)
        self.take("^")
        return self._braced()
