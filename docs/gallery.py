"""A hook of mkdocs: every comment `<!-- cosim derive … -->` of gallery.md becomes what that command makes, and every
`<!-- cosim export code … --target page -->` the page that simulates the rig."""

from __future__ import annotations

import html
import io
import re
import shlex
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

from cosim.cli.command_line import parse

ROOT = Path(__file__).parents[1]
PAGE = "gallery.md"
MARK = re.compile(r"^<!-- cosim (derive .*?) -->$", re.MULTILINE)
BUILT = re.compile(r"^<!-- cosim (export code (\S+) --target page) -->$", re.MULTILINE)
FACTOR_AND_FUNCTION = re.compile(r"(</m(?:n|sub|subsup|row)>)(<mi>(?:sin|cos|tan)</mi>)")
THIN_SPACE = '<mspace width="0.17em"></mspace>'
SENTENCE = "\\noindent "  # begins a line of text
MOST_OPEN = 24  # rows of equations that are not folded

_results: dict[str, str] = {}


def on_files(files: Any, config: Any) -> Any:
    """Runs the commands of the page and adds their pictures to the site."""
    from mkdocs.structure.files import File

    _results.clear()
    text = (Path(config.docs_dir) / PAGE).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for number, words in enumerate(MARK.findall(text), 1):
            suffix = "tex" if "--equations" in words else "svg"
            file = Path(folder) / f"{number}_{Path(shlex.split(words)[1]).stem}.{suffix}"
            printed = run(words, file)
            if suffix == "svg":
                files.append(File.generated(config, f"gallery/{file.name}", content=file.read_bytes()))
                _results[words] = figure(words, f"gallery/{file.name}")
            else:
                _results[words] = equations(words, file.read_text(encoding="utf-8"), printed)
        for words, rig in BUILT.findall(text):
            built = simulated(rig, Path(folder))
            files.append(File.generated(config, f"gallery/{built.name}", content=built.read_bytes()))
            _results[words] = frame(words, f"gallery/{built.name}")
    return files


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Puts the results in the places of the commands; leaves all other pages."""
    if page.file.src_uri != PAGE:
        return content
    return BUILT.sub(lambda found: _results[found[1]], MARK.sub(lambda found: _results[found[1]], content))


def run(words: str, file: Path) -> str:
    """What `cosim derive RIG …` prints when it writes `file`; rigs come from the repository."""
    command, *rest = shlex.split(words)
    paths = [str(ROOT / word) if word.startswith("rigs/") else word for word in rest]
    out = io.StringIO()
    with redirect_stdout(out):
        parse([command, paths[0], str(file), *paths[1:], *["--to", "latex"] * (file.suffix == ".tex")])()
    return out.getvalue()


def simulated(rig: str, folder: Path) -> Path:
    """The page of a rig of the repository, written by `cosim export code`."""
    with redirect_stdout(io.StringIO()):
        parse(["export", "code", str(ROOT / rig), "--target", "page", "-o", str(folder)])()
    return folder / f"{Path(rig).stem}.html"


def frame(words: str, source: str) -> str:
    """A frame in which the page waits to be run, and a link to it alone."""
    kind = next(Path(word).stem for word in shlex.split(words) if word.endswith(".yaml"))
    return (
        f'<figure class="simulated"><iframe src="{source}#paused" title="{kind}, simulated" loading="lazy"></iframe>'
        f'<figcaption><a href="{source}">Open alone</a>: <code>cosim {html.escape(words)}</code></figcaption></figure>'
    )


def figure(words: str, source: str) -> str:
    what = "graph" if "--graph" in words else "mechanism"
    kind = Path(shlex.split(words)[1]).stem
    return (
        f'<figure class="{what}"><img src="{source}" alt="the {what} {kind}" loading="lazy">'
        f"<figcaption><code>cosim {html.escape(words.replace(' --', ' F.svg --', 1))}</code></figcaption></figure>"
    )


def equations(words: str, tex: str, printed: str) -> str:
    """The components as MathML, folded where they are long, and what the command compares them with."""
    head, *components = tex.strip().split("\n\n")
    lines = [line.removeprefix("%").removeprefix(" ") for line in head.splitlines()]
    variables = "\n".join(
        lines[2 : next(k for k, line in enumerate(lines) if line.startswith("computed with"))]
    ).strip()
    parts = [f"<pre><code>{html.escape(variables)}</code></pre>"]
    for component in components:
        said = [sentence(line) for line in component.splitlines() if line.startswith(SENTENCE)]
        formulas = [line for line in component.splitlines() if not line.startswith(("%", SENTENCE, "\\[", "\\]"))]
        parts += [*said, f'<div class="equations">{mathml(chr(10).join(formulas))}</div>']
    opened = " open" if tex.count("&=") <= MOST_OPEN else ""
    summary = f"<summary>Equations: <code>cosim {html.escape(words)}</code></summary>"
    compared = printed.partition("wrote    equations")[2].partition("\n")[2].strip()
    after = f"<pre><code>{html.escape(compared)}</code></pre>" if compared else ""
    return f'<details class="derived"{opened}>{summary}{"".join(parts)}</details>{after}'


def sentence(line: str) -> str:
    """A line of text with formulas between dollar signs."""
    parts = enumerate(line.removeprefix(SENTENCE).split("$"))
    said = [mathml(part, "inline") if k % 2 else html.escape(part.replace(r"\_", "_")) for k, part in parts]
    return f"<p>{''.join(said)}</p>"


def mathml(tex: str, display: str = "block") -> str:
    """Of a formula or an `align*`, with space before functions and dots above letters as accents."""
    found = convert(tex, display=display).replace("<mover>", '<mover accent="true">')
    return FACTOR_AND_FUNCTION.sub(rf"\1{THIN_SPACE}\2", found)
