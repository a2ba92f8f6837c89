"""Takes the picture of a report for the README: the overview, down into its matrix, as Chromium shows it.

python tests/reports/picture.py REPORT reports/picture.png
"""

from __future__ import annotations

import sys
from pathlib import Path

from browser import MISSING, executable, launched

WIDTH, HEIGHT = 1180, 1100


def take(report: Path, picture: Path) -> None:
    """Write the picture."""
    path = executable()
    if path is None:
        sys.exit(MISSING)
    with launched(path) as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto((report / "index.html").absolute().as_uri())
        page.screenshot(path=picture)


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
