"""The style of plots, their file formats, and characters that their fonts lack."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cosim.output.output_files import FORMATS, check_format, write_file
from cosim.output.palette import GRID, INK, PALE, SOFT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")

STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.edgecolor": PALE,
    "axes.labelcolor": SOFT,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.useoffset": False,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "text.parse_math": False,  # names are no formulas
    "xtick.color": PALE,
    "ytick.color": PALE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "lines.solid_capstyle": "round",
}

DPI = 130
SUPERSCRIPTS = str.maketrans("-\N{MINUS SIGN}0123456789", "⁻⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_EXPONENT = re.compile(r"\^\{(.*?)\}")
NO_EXTRA_STYLE: Mapping[Any, Any] = {}

FONT = "DejaVu Sans"  # comes with matplotlib
# fonts of further characters, used where they are installed
OTHER_FONTS = (
    *(f"Noto Sans CJK {region}" for region in ("SC", "TC", "JP", "KR")),
    "Noto Sans",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
    "Noto Emoji",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Microsoft YaHei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Arial Unicode MS",
    "Symbola",
)


def fix_layout(figure: Any) -> None:
    """Lay a figure of DPI out, once: matplotlib would measure all labels again in every pass of saving."""
    from matplotlib.ticker import LogFormatterSciNotation, ScalarFormatter

    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if type(axis.get_major_formatter()) is ScalarFormatter:
            axis.set_major_formatter(_power_formatter())
        elif isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
            axis.set_major_formatter(_log_formatter())
            axis.set_minor_formatter(_log_formatter())
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")


def _power_formatter() -> Any:
    """Numbers beside axes as plain text, which is faster than mathematical text: ×10⁻³ instead of 1e−3."""
    from matplotlib.ticker import ScalarFormatter

    class PowerFormatter(ScalarFormatter):
        def get_offset(self) -> str:
            power = super().get_offset()
            return f"×10{power.removeprefix('1e').translate(SUPERSCRIPTS)}" if power else ""

    return PowerFormatter(useMathText=False)


def _log_formatter() -> Any:
    """Numbers of a logarithmic axis likewise: 10⁻³, 2×10⁻³."""
    from matplotlib.ticker import LogFormatterSciNotation

    class PlainLogFormatter(LogFormatterSciNotation):
        def __call__(self, *value: Any) -> str:
            text = super().__call__(*value).removeprefix(r"$\mathdefault{").removesuffix("}$")
            return _EXPONENT.sub(lambda found: found[1].translate(SUPERSCRIPTS), text).replace(r"\times", "×")

    return PlainLogFormatter()


def styled(draw: Callable[[], T], extra_style: Mapping[Any, Any] = NO_EXTRA_STYLE) -> T:
    """The result of `draw` in STYLE and `extra_style`, independent of the user's matplotlib settings."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        for key, value in {**STYLE, "font.family": list(families()), **extra_style}.items():
            matplotlib.rcParams[key] = value
        return draw()


def save(
    path: str | Path,
    draw: Callable[[], Figure],
    what: str = "plot",
    extra_style: Mapping[Any, Any] = NO_EXTRA_STYLE,
) -> Figure:
    """Write the figure that `draw` makes in the style of `styled`, and return it.

    Raises InputError for an unsupported suffix or a path that cannot be written, RunError for a full disk.
    """
    form = check_format(path)
    content = BytesIO()

    def drawn() -> Figure:
        figure = draw()
        figure.savefig(content, format=form, dpi=DPI, metadata=FORMATS[form])
        return figure

    figure = styled(drawn, extra_style)
    write_file(path, content.getvalue(), what)
    return figure


@cache
def families() -> tuple[str, ...]:
    """The installed fonts in the order in which a character is looked up."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return FONT, *(name for name in OTHER_FONTS if name in installed)


def drawable(text: str) -> str:
    """The text with each character that no font has as its number: `\\u80a9`."""
    if text.isascii() or all(ord(c) in _characters(FONT) for c in text):
        return text
    return "".join(c if any(ord(c) in _characters(font) for font in families()) else _number(c) for c in text)


def _number(character: str) -> str:
    return f"\\u{ord(character):04x}"


@cache
def _characters(family: str) -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont(family)).get_charmap())
