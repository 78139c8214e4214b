"""Characters that the fonts of a plot lack: other installed fonts show them, or else their numbers do."""

from __future__ import annotations

from functools import cache

FONT = "DejaVu Sans"  # comes with matplotlib
# fonts of further characters, used where they are installed
OTHERS = (
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


@cache
def families() -> tuple[str, ...]:
    """The installed fonts in the order in which a character is looked up."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return FONT, *(name for name in OTHERS if name in installed)


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
