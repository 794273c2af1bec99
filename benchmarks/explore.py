"""Waiting times of the explorer, each with its target.

    python -m benchmarks.explore

A headless Chromium without a GPU opens the pages of `qwp explore`. CPU seconds are those of the program and the browser
together; on a busy machine they are more reliable than wall-clock seconds. `--novels DIR` names an alignment of twice
20,000 words; by default it is computed from the benchmark data, if available. `--layouts` compares layouts of the map,
with UMAP if umap-learn is installed. `--corrections` measures how correcting half of the demo's lexicon improves the
other half. A missed target is reported in its row and is no error.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import qwp
from benchmarks import records
from benchmarks.common import machine, save
from benchmarks.daily import HEAD, Figure
from benchmarks.data import novels
from qwp import Alignment
from qwp.arrays import AnyFloats
from qwp.explore import tsne
from qwp.explore.pairs import PairTable, find_pairs
from qwp.explore.session import settings
from qwp.spaces.demo import load_demo

RESULTS = records.FOLDER / "explore.json"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu-compositing", "--enable-unsafe-swiftshader"]
_ASKED = 50
_SECONDS_OF_PANNING = 4


def ignore(what: str, done: int, total: int) -> None:
    """Ignore progress."""


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, float]]:
    """Run `qwp explore` on a folder; yield its address and the time of its start."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "qwp", "explore", str(folder), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), begin
    finally:
        process.terminate()
        process.wait()


def opened(folder: Path, browser: Any, name: str, target: float) -> list[Figure]:
    """Measure the time from the command to the answer to a typed word, and that of further answers."""
    word = Alignment.load(folder, check="size").src.words[300]
    before = _processor_seconds()
    with serving(folder) as (address, begin):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        page.get_by_test_id("search").fill(word)
        page.keyboard.press("Enter")
        page.get_by_test_id("translation").first.wait_for()
        interactive, worked = time.perf_counter() - begin, _processor_seconds() - before
        page.wait_for_function("() => document.getElementById('work').hidden", timeout=600_000)
        before = _processor_seconds()
        answers = _answers(address, folder)
        answering = (_processor_seconds() - before) / _ASKED
        page.close()
    return [
        Figure(f"{name}: command to answered word", interactive, target),
        Figure(f"{name}: the same", worked, unit="CPU s"),
        Figure(f"{name}: a word's answer, median of {_ASKED}", statistics.median(answers), 0.1),
        Figure(f"{name}: a word's answer, slowest of {_ASKED}", max(answers), 0.1),
        Figure(f"{name}: a word's answer", answering, unit="CPU s"),
    ]


def _answers(address: str, folder: Path) -> list[float]:
    words = Alignment.load(folder, check="size").src.words
    found = []
    for word in words[100 : 100 + _ASKED]:
        begin = time.perf_counter()
        with urllib.request.urlopen(f"{address}api/word?{urllib.parse.urlencode({'w': word})}") as answer:
            answer.read()
        found.append(time.perf_counter() - begin)
    return found


# Drags the map to and fro, one step a frame, farther than the margin that is drawn around the view. Returns the number
# of frames, the time, and the number of complete drawings.
_PAN = """async (seconds) => {
  const canvas = document.querySelector("canvas.points"), box = canvas.getBoundingClientRect();
  const send = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {pointerId: 1, clientX: x, clientY: y}));
  const next = () => new Promise((done) => requestAnimationFrame(done));
  const middle = [box.left + box.width / 2, box.top + box.height / 2];
  send("pointerdown", ...middle);
  const holder = document.querySelector(".map"), before = Number(holder.dataset.drawn);
  let frames = 0;
  const begin = performance.now();
  while (performance.now() - begin < 1000 * seconds) {
    send("pointermove", middle[0] + 500 * Math.sin(frames / 25), middle[1] + 200 * Math.sin(frames / 17));
    await next();
    frames += 1;
  }
  const taken = performance.now() - begin;
  send("pointerup", ...middle);
  return [frames, taken, Number(holder.dataset.drawn) - before];
}"""


def _processor_seconds() -> float:
    """Return the CPU seconds of all descendants of this process, the browser included. 0 outside Linux."""
    if not Path("/proc/self/stat").is_file():
        return 0.0
    parents, seconds = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            number = int(path.parent.name)
            parents[number], seconds[number] = int(fields[1]), (int(fields[11]) + int(fields[12])) / 100
    ours = {os.getpid()}
    while more := {number for number, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(seconds.get(number, 0.0) for number in ours - {os.getpid()})


def panned(folder: Path, browser: Any, name: str) -> list[Figure]:
    """Measure the seconds per frame while the map is dragged, with and without lines between the pairs.

    On a busy machine the CPU seconds of a frame show what an idle one would reach.
    """
    found = []
    with serving(folder) as (address, _):
        for label, asked in (("", "#/map"), (" with lines", "#/map?lines=1")):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address + asked)
            page.locator(".map[data-ready=yes]").wait_for(timeout=600_000)
            page.wait_for_timeout(500)
            before = _processor_seconds()
            frames, taken, drawn = page.evaluate(_PAN, _SECONDS_OF_PANNING)
            worked = _processor_seconds() - before
            page.close()
            shown = f"{name}: a frame while panning{label}"
            rate = f"{1000 * frames / taken:.0f} a second, {frames / max(1, drawn):.0f} for each drawing"
            found.append(Figure(f"{shown} ({rate})", taken / frames / 1000, 1 / 30))
            found.append(Figure(shown, worked / frames, unit="CPU s"))
    return found


# --------------------------------------------------------------------------- layouts of the map


def layouts(folder: Path, name: str) -> list[dict[str, Any]]:
    """Measure each layout: seconds, and the share of partners and neighbours that stay near in the plane."""
    alignment = replace(Alignment.load(folder), origin=None)
    found = find_pairs(alignment, 20_000, ignore)
    rows = np.concatenate(
        [np.asarray(alignment.mapped("src"))[found.src_rows], np.asarray(alignment.mapped("tgt"))[found.tgt_rows]]
    )
    methods: dict[str, Any] = {
        "first two principal components": lambda: tsne.projected(rows),
        "t-SNE of the graph (here)": lambda: tsne.embedded(tsne.graph(found), tsne.projected(rows), ignore),
    }
    if importlib.util.find_spec("umap") is not None:
        methods["UMAP of the vectors (umap-learn)"] = lambda: _umap(rows)
        methods["UMAP of the graph (umap-learn)"] = lambda: _umap_of_graph(found, rows)
    measured = []
    for method, work in methods.items():
        begin = time.perf_counter()
        positions = work()
        seconds = time.perf_counter() - begin
        measured.append({"data": name, "layout": method, "seconds": seconds, **faithfulness(positions, found)})
    return measured


def _umap(rows: AnyFloats) -> AnyFloats:
    import umap

    return np.asarray(umap.UMAP(metric="cosine", random_state=0).fit_transform(rows))


def _umap_of_graph(found: PairTable, rows: AnyFloats) -> AnyFloats:
    """Embed the graph of the explorer with umap-learn."""
    from umap.umap_ import find_ab_params, simplicial_set_embedding

    pulls = tsne.graph(found)
    pulls = pulls / pulls.max()
    a, b = find_ab_params(1.0, 0.1)
    positions, _ = simplicial_set_embedding(
        *(rows, pulls.tocoo(), 2, 1.0, a, b, 1.0, 5, 200, tsne.projected(rows).copy(), np.random.RandomState(0)),
        *("euclidean", {}, False, {}, False),
    )
    return np.asarray(positions)


def faithfulness(positions: AnyFloats, found: PairTable) -> dict[str, float]:
    """Return the ranks of confident partners by distance in the plane, and the share of neighbours kept."""
    from scipy.spatial import cKDTree

    n = len(found.src_rows)
    src, tgt = np.asarray(positions[:n], dtype=np.float64), np.asarray(positions[n:], dtype=np.float64)
    sure = np.flatnonzero(found.mutual & (found.best_positions >= 0) & (found.confidence > 0.5))
    away = np.linalg.norm(src[sure] - tgt[found.best_positions[sure]], axis=1)
    tree = cKDTree(tgt)
    ranks = tree.query_ball_point(src[sure], away + 1e-9, return_length=True)
    some = np.arange(0, n, max(1, n // 2000))
    _, near = cKDTree(src).query(src[some], 11)
    both = zip(some.tolist(), near.tolist(), strict=True)
    kept = [len(set(row[1:]) & set(found.src_near[at])) / 10 for at, row in both]
    return {
        "partner_rank_median": float(np.median(ranks)),
        "partner_in_10": float(np.mean(ranks <= 10)),
        "neighbours_kept": float(np.mean(kept)),
    }


# --------------------------------------------------------------------------- corrections


def corrections(words: int, splits: int) -> dict[str, Any]:
    """Measure the gain in P@1 on the corrected half of the demo's lexicon and on the other half."""
    src, tgt, lexicon = load_demo()
    src, tgt = src.head(words), tgt.head(words)
    covered = {s: [t for t in ts if t in tgt] for s, ts in lexicon.targets.items() if s in src}
    gold = {s: ts for s, ts in covered.items() if ts}
    before = qwp.align(src, tgt, verdict="none")
    weight = settings(before)["anchor_weight"]
    rng, gains = np.random.default_rng(0), []
    for _ in range(splits):
        order = rng.permutation(sorted(gold)).tolist()
        halves = order[: len(order) // 2], order[len(order) // 2 :]
        for known, other in (halves, halves[::-1]):
            pairs = [(s, t) for s in known for t in gold[s]]
            after = qwp.align(src, tgt, lexicon=pairs, verdict="none", anchor_weight=weight)
            gains.append([_right(after, gold, half) - _right(before, gold, half) for half in (other, known)])
    held_out, corrected = np.array(gains).T
    return {
        "words": words,
        "lexicon_words": len(gold),
        "before": _right(before, gold, list(gold)),
        "held_out_gain": float(held_out.mean()),
        "held_out_error": float(held_out.std(ddof=1) / len(gains) ** 0.5),
        "corrected_gain": float(corrected.mean()),
        "runs": len(gains),
    }


def _right(alignment: Alignment, gold: dict[str, list[str]], words: Sequence[str]) -> float:
    found = alignment.translate(list(words), k=1)
    return sum(found[word][0].word in gold[word] for word in words) / len(words)


# --------------------------------------------------------------------------- command line


def pages(novels: Path | None, scratch: Path) -> list[Figure]:
    """Measure everything that needs a browser."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit(f"no browser is found: expected one of {', '.join(BROWSERS)}")
    demo = qwp.demo().save(scratch / "demo")
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        found += opened(demo, browser, "demo, first time", 3.0)
        found += panned(demo, browser, "demo, 2 x 5,000 points")
        if novels is not None:
            _prepare(novels)
            found += opened(novels, browser, "2 x 20,000 x 300, map cached", 6.0)
            found += panned(novels, browser, "2 x 20,000 points")
        browser.close()
    return found


def _prepare(folder: Path) -> None:
    """Compute and cache table and map, and print the time."""
    alignment = Alignment.load(folder)
    begin = time.perf_counter()
    found = find_pairs(alignment, 20_000, ignore)
    middle = time.perf_counter()
    tsne.map_positions(alignment, found, ignore)
    print(f"once: {middle - begin:.1f} s for the table, {time.perf_counter() - middle:.1f} s for the map", flush=True)


def align_novels(scratch: Path) -> Path | None:
    """Align twice 20,000 words, if their vectors are available."""
    task = novels("en-es")
    if not task.available:
        return None
    src, tgt, _ = task.load()
    return qwp.align(src, tgt).save(scratch / "novels")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table and save the figures beside those of earlier calls."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.explore", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--novels", type=Path, help="an alignment of twice 20,000 words (default: computed here)")
    parser.add_argument("--layouts", action="store_true", help="only compare layouts of the map")
    parser.add_argument("--corrections", action="store_true", help="only measure the gain from corrections")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file that gets the figures")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="qwp-explore-") as folder:
        scratch = Path(folder)
        results: dict[str, Any] = {}
        if options.corrections:
            results["corrections"] = [corrections(5000, 2), corrections(1500, 4)]
        elif options.layouts:
            novels = options.novels or align_novels(scratch)
            sets = {"demo": qwp.demo().save(scratch / "demo"), **({} if novels is None else {"novels en-es": novels})}
            results["layouts"] = [row for name, each in sets.items() for row in layouts(each, name)]
        else:
            figures = pages(options.novels or align_novels(scratch), scratch)
            print(HEAD)
            for figure in figures:
                print(figure.row())
            results["pages"] = [figure.as_json() for figure in figures]
        for row in results.get("layouts", []) + results.get("corrections", []):
            print({name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()})
        before = json.loads(options.output.read_text("utf-8")) if options.output.exists() else {}
        save({**before, **results, "machine": machine()}, options.output)


if __name__ == "__main__":
    main()
