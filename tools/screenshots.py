"""Screenshots of the explorer for the documents: `python -m tools.screenshots`. Needs Chromium and playwright.

They show the demo. No test compares them; people check them.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import qwp
from qwp import Alignment
from qwp.explore.server import ExplorerServer
from qwp.explore.session import Session
from qwp.explore.workspace import Workspace
from qwp.spaces.demo import load_demo
from tools import project

FOLDER = project.ROOT / "docs" / "images"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = ["--no-sandbox", "--disable-gpu-compositing", "--enable-unsafe-swiftshader", "--force-color-profile=srgb"]
MOST_BYTES = 300_000
_WIDE, _NARROW = (1100, 760), (390, 760)


@dataclass(frozen=True)
class Picture:
    """One screenshot: its name, the address of its page, and the settings of the browser."""

    name: str
    address: str
    dark: bool = False
    size: tuple[int, int] = _WIDE
    ready: str = "main[data-ready]"


_MAP = ".map[data-ready=yes]"
PICTURES = (
    Picture("word-light", "#/word?w=house"),
    Picture("word-dark-narrow", "#/word?w=water", dark=True, size=_NARROW),
    Picture("map-light", "#/map", ready=_MAP),
    Picture("map-dark", "#/map?color=confidence&lines=1&w=src%3Ahouse", dark=True, ready=_MAP),
    Picture("map-light-narrow", "#/map?color=right&x=0.5&y=0.5&z=2.5", size=_NARROW, ready=_MAP),
    Picture("table-dark", "#/table?sort=confidence&dir=desc", dark=True),
    Picture("table-light-narrow", "#/table", size=_NARROW),
    Picture("suspects-light", "#/suspects?right=wrong"),
    Picture("compare-light", "#/compare?a=0&b=1&shown=first"),
    Picture("about-dark", "#/about", dark=True),
)


def main(arguments: list[str] | None = None) -> int:
    """Take the screenshots. Returns 1 if there is no browser or a file is too large."""
    parser = argparse.ArgumentParser(description="Take the screenshots of the explorer.")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the screenshots")
    options = parser.parse_args(arguments)
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        print(f"found no browser, expected one of {', '.join(_BROWSERS)}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="qwp-screenshots-") as folder:
        session, server = serve(Path(folder))
        try:
            large = take(server.address, browser, options.out)
        finally:
            session.close()
            server.shutdown()
    for path in large:
        print(f"{path} has {path.stat().st_size:,} bytes, expected at most {MOST_BYTES:,}", file=sys.stderr)
    return 1 if large else 0


def serve(folder: Path) -> tuple[Session, ExplorerServer]:
    """Serve the demo, aligned by two methods, with its map."""
    src, tgt, lexicon = load_demo()
    qwp.align(src, tgt).save(folder / "demo")
    qwp.align(src, tgt, method="identical").save(folder / "identical")
    opened = [
        Workspace(name, Alignment.load(folder / name), folder=folder / name, lexicon=lexicon)
        for name in ("demo", "identical")
    ]
    for each in opened:
        each.prepare(lambda what, done, total: None)
    session = Session(opened)
    session.start()
    server = ExplorerServer(session)
    Thread(target=server.serve_forever, daemon=True).start()
    return session, server


def take(address: str, browser: str, out: Path) -> list[Path]:
    """Take all screenshots. Returns those that are too large."""
    from playwright.sync_api import sync_playwright

    paths = []
    with sync_playwright() as playwright:
        started: Any = playwright.chromium.launch(executable_path=browser, args=_FLAGS)
        for picture in PICTURES:
            width, height = picture.size
            page = started.new_page(
                viewport={"width": width, "height": height}, color_scheme="dark" if picture.dark else "light"
            )
            page.goto(address + picture.address)
            page.locator(picture.ready).wait_for()
            page.wait_for_timeout(800)
            path = out / f"explore-{picture.name}.png"
            page.screenshot(path=str(path))
            page.close()
            print(path.name, f"{path.stat().st_size:,}", flush=True)
            paths.append(path)
        started.close()
    return [path for path in paths if path.stat().st_size > MOST_BYTES]


if __name__ == "__main__":
    sys.exit(main())
