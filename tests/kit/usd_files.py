"""USD files for tests, as `mujoco-usd-converter` of the Newton project writes them from MJCF.

`python -m tests.kit.usd_files` writes `tests/oracle/usd/*.usda` from the MJCF files there. It needs the package
`mujoco-usd-converter`, which no test does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "oracle" / "usd"


def main() -> None:
    import mujoco_usd_converter
    from pxr import Usd

    for source in sorted(FOLDER.glob("*.xml")):
        with tempfile.TemporaryDirectory() as folder:
            asset = mujoco_usd_converter.Converter().convert(str(source), folder)
            Usd.Stage.Open(asset.path).Export(str(source.with_suffix(".usda")), addSourceFileComment=False)


if __name__ == "__main__":
    main()
