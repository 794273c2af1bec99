"""What the explorer makes its user wait for, each against its target. `python -m benchmarks.explore --help`.

    python -m benchmarks.explore

Pages are opened in a real browser (Chromium, headless, rendering by the processor), from the start of `qwp explore` on.
CPU seconds are of the program and the browser together: on a busy machine they say more than the clock.
`--novels DIR` names an alignment of two times 20,000 words; without one it is made from $QWP_BENCH or ../shared/bench
where that is there. `--layouts` compares ways to lay out the map, with UMAP if umap-learn is installed; `--corrections`
measures what correcting half of the demo's lexicon brings to the other half. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
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
from benchmarks.common import machine, save
from benchmarks.daily import Figure
from benchmarks.data import BENCH
from qwp import Alignment
from qwp.explore import layout
from qwp.explore.findings import Findings, found_in
from qwp.explore.session import ANCHOR_WEIGHT
from qwp.spaces.demo import load_demo
from qwp.spaces.embeddings import FloatArray

RESULTS = Path(__file__).parent / "results" / "explore.json"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu-compositing", "--enable-unsafe-swiftshader"]
_ASKED = 50
_SECONDS_OF_PANNING = 4


def nobody(what: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, float]]:
    """`qwp explore` of a folder: its address, and the moment at which it was started."""
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
    """From the start of the command to the answer to a word that was typed, and each answer after that."""
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
        Figure(f"{name}: the same", worked, math.inf, "CPU s"),
        Figure(f"{name}: a word's answer, median of {_ASKED}", statistics.median(answers), 0.1),
        Figure(f"{name}: a word's answer, slowest of {_ASKED}", max(answers), 0.1),
        Figure(f"{name}: a word's answer", answering, math.inf, "CPU s"),
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


# Drags the map to and fro, farther than what is drawn beyond the edges, one step a frame; counts the frames that came,
# and how often all points were drawn anew.
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
    """Of all processes that descend from this one, the browser among them. Linux only; 0 elsewhere."""
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
    """Seconds of a frame while the whole map is dragged, with and without lines between the pairs.

    What the processor worked for a frame tells, on a busy machine, what an idle one would do: two cores share it.
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
            found.append(Figure(shown, worked / frames, math.inf, "CPU s"))
    return found


# --------------------------------------------------------------------------- ways to lay out the map


def layouts(folder: Path, name: str) -> list[dict[str, Any]]:
    """Seconds, and how faithful it is: partners and neighbours that are near in the plane as well."""
    alignment = replace(Alignment.load(folder), origin=None)
    found = found_in(alignment, 20_000, nobody)
    rows = np.concatenate(
        [np.asarray(alignment.mapped("src"))[found.src_rows], np.asarray(alignment.mapped("tgt"))[found.tgt_rows]]
    )
    ways: dict[str, Any] = {
        "first two principal components": lambda: layout.projected(rows),
        "t-SNE of the graph (here)": lambda: layout.laid_out(layout.graph(found), layout.projected(rows), nobody),
    }
    if importlib.util.find_spec("umap") is not None:
        ways["UMAP of the vectors (umap-learn)"] = lambda: _umap(rows)
        ways["UMAP of the graph (umap-learn)"] = lambda: _umap_of_graph(found, rows)
    measured = []
    for way, work in ways.items():
        begin = time.perf_counter()
        places = work()
        seconds = time.perf_counter() - begin
        measured.append({"data": name, "layout": way, "seconds": seconds, **faithful(places, found)})
    return measured


def _umap(rows: FloatArray) -> FloatArray:
    import umap

    return np.asarray(umap.UMAP(metric="cosine", random_state=0).fit_transform(rows))


def _umap_of_graph(found: Findings, rows: FloatArray) -> FloatArray:
    """The embedding of umap-learn for the same graph as here."""
    from umap.umap_ import find_ab_params, simplicial_set_embedding

    pulls = layout.graph(found)
    pulls = pulls / pulls.max()
    a, b = find_ab_params(1.0, 0.1)
    places, _ = simplicial_set_embedding(
        *(rows, pulls.tocoo(), 2, 1.0, a, b, 1.0, 5, 200, layout.projected(rows).copy(), np.random.RandomState(0)),
        *("euclidean", {}, False, {}, False),
    )
    return np.asarray(places)


def faithful(places: FloatArray, found: Findings) -> dict[str, float]:
    """How near sure pairs lie to each other, by ranks, and how many neighbours stay neighbours."""
    from scipy.spatial import cKDTree

    n = len(found.src_rows)
    src, tgt = np.asarray(places[:n], dtype=np.float64), np.asarray(places[n:], dtype=np.float64)
    sure = np.flatnonzero(found.mutual & (found.best_places >= 0) & (found.chance > 0.5))
    away = np.linalg.norm(src[sure] - tgt[found.best_places[sure]], axis=1)
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


# --------------------------------------------------------------------------- what corrections bring


def corrections(words: int, splits: int) -> dict[str, Any]:
    """P@1 on the half of the demo's lexicon that was not corrected, and on the half that was, before and after."""
    src, tgt, lexicon = load_demo()
    src, tgt = src.head(words), tgt.head(words)
    covered = {s: [t for t in ts if t in tgt] for s, ts in lexicon.targets.items() if s in src}
    gold = {s: ts for s, ts in covered.items() if ts}
    before = qwp.align(src, tgt, verdict="none")
    rng, gains = np.random.default_rng(0), []
    for _ in range(splits):
        order = rng.permutation(sorted(gold)).tolist()
        halves = order[: len(order) // 2], order[len(order) // 2 :]
        for known, other in (halves, halves[::-1]):
            pairs = [(s, t) for s in known for t in gold[s]]
            after = qwp.align(src, tgt, lexicon=pairs, anchor_weight=ANCHOR_WEIGHT, verdict="none")
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


# --------------------------------------------------------------------------- all of it


def pages(novels: Path | None, scratch: Path) -> list[Figure]:
    """Everything that needs a browser."""
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
    """Make table and map, and say how long that takes; at once where they are there."""
    alignment = Alignment.load(folder)
    begin = time.perf_counter()
    found = found_in(alignment, 20_000, nobody)
    middle = time.perf_counter()
    layout.plane_of(alignment, found, nobody)
    print(f"once: {middle - begin:.1f} s for the table, {time.perf_counter() - middle:.1f} s for the map", flush=True)


def made(scratch: Path) -> Path | None:
    """An alignment of two times 20,000 words, if its vectors are there."""
    files = [BENCH / "novels" / f"{language}.npz" for language in ("en", "es")]
    if not all(file.is_file() for file in files):
        return None
    return qwp.align(files[0], files[1]).save(scratch / "novels")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table, and keep the figures."""
    parser = argparse.ArgumentParser(description="What the explorer makes its user wait for.")
    parser.add_argument("--novels", type=Path, help="an alignment of two times 20,000 words (default: made here)")
    parser.add_argument("--layouts", action="store_true", help="compare ways to lay out the map, nothing else")
    parser.add_argument("--corrections", action="store_true", help="measure what corrections bring, nothing else")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the figures go")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="qwp-explore-") as folder:
        scratch = Path(folder)
        results: dict[str, Any] = {}
        if options.corrections:
            results["corrections"] = [corrections(5000, 2), corrections(1500, 4)]
        elif options.layouts:
            novels = options.novels or made(scratch)
            sets = {"demo": qwp.demo().save(scratch / "demo"), **({} if novels is None else {"novels en-es": novels})}
            results["layouts"] = [row for name, each in sets.items() for row in layouts(each, name)]
        else:
            figures = pages(options.novels or made(scratch), scratch)
            print("| what | before | now | target | reached |\n|---|---|---|---|---|")
            for figure in figures:
                print(figure.row())
            results["pages"] = [figure.as_json() for figure in figures]
        for row in results.get("layouts", []) + results.get("corrections", []):
            print({name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()})
        _keep(options.output, results)


def _keep(path: Path, results: dict[str, Any]) -> None:
    """Beside what earlier calls have measured."""
    before = json.loads(path.read_text("utf-8")) if path.exists() else {}
    save({**before, **results, "machine": machine()}, path)


if __name__ == "__main__":
    main()
