"""The pages in a real browser, on the demo. Skipped where no browser is found: `QWP_BROWSER` names one elsewhere."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from qwp import Alignment, Embeddings, align
from qwp.explore.server import ExplorerServer
from qwp.explore.session import Session
from qwp.explore.workspace import Workspace
from qwp.spaces.demo import load_demo
from qwp.spaces.lexicon import Lexicon
from tests.explore.test_session import until
from tests.explore.test_workspace import with_items

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
BROWSER = os.environ.get("QWP_BROWSER") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no browser is found (chromium, google-chrome, or QWP_BROWSER)"),
]
# Rendering by the processor: the same everywhere.
FLAGS = ["--no-sandbox", "--disable-gpu-compositing", "--enable-unsafe-swiftshader"]
MARKUP = "<img src=x onerror=alert(1)>"
WORDS = 1500


@dataclass(frozen=True)
class Explorer:
    """A running explorer. gold: translations of words that its lexicon does not have."""

    server: ExplorerServer
    session: Session
    folder: Path
    gold: dict[str, list[str]]

    def address(self, view: str = "") -> str:
        return f"{self.server.address}{view}"


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """The first words of the demo by two methods, with half of its lexicon."""
    src, tgt, lexicon = load_demo()
    words = [*src.words[: WORDS - 1], MARKUP]
    src, tgt = Embeddings(words, src.vectors[:WORDS], name="en"), tgt.head(WORDS)
    covered = {s: [t for t in ts if t in tgt] for s, ts in lexicon.targets.items() if s in src}
    gold = {s: ts for s, ts in covered.items() if ts}
    known = list(gold)[::2]
    half = Lexicon(tuple((s, t) for s in known for t in gold[s]))
    base = tmp_path_factory.mktemp("browser")
    align(src, tgt, start="profiles", threads=1).save(base / "demo")
    align(src, tgt, method="identical", threads=1, verdict="none").save(base / "identical")
    opened = [
        Workspace(name, Alignment.load(base / name), folder=base / name, lexicon=half) for name in ("demo", "identical")
    ]
    session = Session(opened)
    server = ExplorerServer(session)
    session.start()
    Thread(target=server.serve_forever, daemon=True).start()
    until(lambda: session.task(1).state == "done")
    yield Explorer(server, session, base, {s: ts for s, ts in gold.items() if s not in known})
    session.close()
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that must log no error and send requests only to its server."""
    opened = browser.new_page(viewport={"width": 1200, "height": 800})
    opened.set_default_timeout(15_000)
    troubles: list[str] = []
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
    opened.on("dialog", lambda dialog: troubles.append(f"dialog {dialog.message}"))
    opened.on("request", lambda asked: troubles.append(asked.url) if "127.0.0.1" not in asked.url[:30] else None)
    yield opened
    allowed = [trouble for trouble in troubles if not trouble.startswith(("data:", "blob:"))]
    opened.close()
    assert allowed == []


def at(page: Any, name: str) -> Any:
    return page.get_by_test_id(name)


def expect(locator: Any) -> Any:
    sync_api.expect.set_options(timeout=20_000)  # for busy machines
    return sync_api.expect(locator)


def test_search_completion_and_the_other_language(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address())
    at(page, "search").fill("hou")
    expect(at(page, "completion").first).to_have_text("house")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(at(page, "asked")).to_have_text("house")
    expect(at(page, "translation-word").first).to_have_text("casa")
    expect(at(page, "why-row")).to_have_count(5)
    expect(at(page, "neighbours-own").locator("li")).to_have_count(10)
    expect(at(page, "neighbours-other").locator("li")).to_have_count(10)
    assert "Lexicon" in at(page, "gold").inner_text() or "lexicon" in at(page, "gold").inner_text()
    expect(at(page, "others")).to_contain_text("identical")
    at(page, "side-tgt").click()
    expect(at(page, "asked")).to_have_text("casa")
    expect(at(page, "translation-word").first).to_have_text("house")
    assert "side=tgt" in page.url
    assert "w=casa" in page.url
    at(page, "search").fill("Casas")
    page.keyboard.press("Enter")
    expect(at(page, "unknown").or_(at(page, "asked"))).to_be_visible()


def test_an_address_restores_its_view(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address("#/word?side=tgt&w=agua"))
    expect(at(page, "asked")).to_have_text("agua")
    page.goto(explorer.address("#/table?sort=confidence&dir=desc&mutual=yes&q=house"))
    expect(at(page, "filter-text")).to_have_value("house")
    expect(at(page, "filter-mutual")).to_have_value("yes")
    expect(at(page, "row").first).to_contain_text("house")
    page.goto(explorer.address("#/map?color=confidence&lines=1&x=0.4000&y=0.6000&z=5.00&w=src%3Ahouse"))
    expect(page.locator(".map[data-zoom='5.000'][data-x='0.4000'][data-y='0.6000']")).to_be_visible()
    expect(at(page, "color")).to_have_value("confidence")
    expect(at(page, "panel-word")).to_have_text("house")
    page.reload()
    expect(page.locator(".map[data-zoom='5.000']")).to_be_visible()
    page.goto(explorer.address("#/about?a=1"))
    expect(at(page, "about-provenance")).to_contain_text("identical")


NOT_BLANK = """async () => {
  const canvas = document.querySelector("canvas.points");
  document.dispatchEvent(new Event("themechange"));  // everything is drawn again in the next frame
  await new Promise((done) => requestAnimationFrame(done));
  const gl = canvas.getContext("webgl2"), all = new Uint8Array(4 * canvas.width * canvas.height);
  gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, all);
  const colors = new Set();
  let drawn = 0;
  for (let i = 0; i < all.length; i += 4) {
    if (all[i + 3]) { drawn += 1; colors.add(`${all[i]},${all[i + 1]},${all[i + 2]}`); }
  }
  return [drawn, colors.size];
}"""


def test_the_map_is_drawn_panned_zoomed_and_clicked(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address("#/map"))
    held = page.locator(".map[data-ready=yes]")
    expect(held).to_be_visible()
    drawn, colors = page.evaluate(NOT_BLANK)
    assert drawn > 3000
    assert colors >= 2
    canvas = at(page, "map")
    before = held.get_attribute("data-x")
    page.mouse.move(600, 500)
    page.mouse.down()
    page.mouse.move(500, 450, steps=4)
    page.mouse.up()
    expect(page.locator(f".map:not([data-x='{before}'])")).to_be_visible()
    zoomed = float(held.get_attribute("data-zoom") or 0)
    page.mouse.wheel(0, -400)
    at(page, "zoom-in").click()
    page.keyboard.press("+")
    page.wait_for_timeout(300)
    assert float(held.get_attribute("data-zoom") or 0) > 2 * zoomed
    page.keyboard.press("0")
    expect(page.locator(".map[data-zoom='1.000'][data-x='0.5000']")).to_be_visible()
    at(page, "map-search").fill("water")
    page.keyboard.press("Enter")
    expect(at(page, "panel-word")).to_have_text("water")
    # The selected word is in the middle of the map: a click there selects it again.
    page.locator("#main").get_by_role("button", name="Close").click()
    expect(at(page, "panel")).to_be_hidden()
    page.wait_for_timeout(250)
    box = canvas.bounding_box()
    page.evaluate("() => document.activeElement.blur()")
    expect(page.locator(".map[data-zoom='12.000']")).to_be_visible()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(at(page, "panel-word")).to_be_visible()


def test_lines_colours_hubs_and_the_lasso(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address("#/map"))
    expect(page.locator(".map[data-ready=yes]")).to_be_visible()
    at(page, "lines").click()
    expect(page.locator(".map:not([data-lines='0'])")).to_be_visible()
    at(page, "color").select_option("right")
    expect(at(page, "legend")).to_contain_text("lexicon has other translations")
    at(page, "shown").select_option("orphans")
    page.wait_for_timeout(200)
    assert "show=orphans" in page.url
    assert "color=right" in page.url
    at(page, "shown").select_option("all")
    at(page, "lasso").click()
    page.mouse.move(450, 300)
    page.mouse.down()
    for x, y in ((800, 300), (800, 650), (450, 650)):
        page.mouse.move(x, y, steps=3)
    page.mouse.up()
    expect(at(page, "lassoed")).to_have_text(re.compile(r"[\d,]+ words"))
    dimmed = page.evaluate(NOT_BLANK)[1]
    page.keyboard.press("Escape")
    expect(at(page, "panel")).to_be_hidden()
    assert page.evaluate(NOT_BLANK)[1] != dimmed


def test_the_map_is_searched_without_accents_and_says_what_it_shows(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address("#/map"))
    expect(page.locator(".map[data-ready=yes]")).to_be_visible()
    expect(at(page, "near")).to_contain_text(re.compile(r"\d+ % of mutual pairs are among each other's 10 nearest"))
    at(page, "map-search").fill("DIA")
    expect(page.locator("#on-the-map option").first).to_be_attached()
    page.keyboard.press("Enter")
    expect(at(page, "panel-word")).to_be_visible()


def test_the_table_is_filtered_and_sorted(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address("#/table"))
    expect(at(page, "row")).to_have_count(50)
    expect(at(page, "count")).to_contain_text("1,500 of 1,500 pairs")
    at(page, "filter-text").fill("hous")
    expect(at(page, "count")).not_to_contain_text("1,500 of 1,500")
    for text in at(page, "row").all_inner_texts():
        assert "hous" in text
    at(page, "filter-text").fill("")
    at(page, "filter-first").fill("11")
    at(page, "filter-last").fill("30")
    page.keyboard.press("Tab")
    expect(at(page, "count")).to_contain_text("20 of 1,500 pairs")
    assert "first=11" in page.url
    at(page, "filter-first").fill("")
    at(page, "filter-last").fill("")
    page.keyboard.press("Tab")
    expect(at(page, "count")).to_contain_text("1,500 of 1,500 pairs")
    at(page, "filter-right").select_option("wrong")
    expect(at(page, "row").first.get_by_label("not in the lexicon, which has other translations")).to_be_visible()
    at(page, "sort-confidence").click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Confidence")
    page.goto(explorer.address("#/suspects"))
    expect(at(page, "row").first.locator(".tag").first).to_be_visible()
    expect(at(page, "count")).to_contain_text("the 200 most suspicious of")


# The first change of a page is delayed: those after it must not overtake it.
SLOW_FIRST_POST = """() => {
  const fetched = window.fetch;
  let delay = 500;
  window.fetch = async (address, options) => {
    if (options?.method === "POST") {
      const now = delay;
      delay = 0;
      await new Promise((done) => setTimeout(done, now));
    }
    return fetched(address, options);
  };
}"""


def test_pairs_are_accepted_and_rejected_by_keyboard(explorer: Explorer, page: Any) -> None:
    page.add_init_script(f"({SLOW_FIRST_POST})()")
    page.goto(explorer.address("#/table?a=1"))
    expect(at(page, "row")).to_have_count(50)
    for key in ("a", "a", "r"):  # as fast as possible
        page.keyboard.press(key)
    expect(at(page, "marks")).to_have_text("2 accepted, 1 rejected")
    for key in ("j", "k", "k", "u"):
        page.keyboard.press(key)
    expect(at(page, "marks")).to_have_text("2 accepted, 0 rejected")
    kept = Lexicon.load(explorer.folder / "identical" / "corrections.tsv").pairs
    assert len(kept) == 2
    assert kept[0][0] == "the"
    page.goto(explorer.address("#/word?a=1&w=house"))
    # The table stays until the word is loaded, and its first row has the same button.
    accept = at(page, "translation").first.get_by_test_id("accept")
    accept.click()
    expect(accept).to_have_attribute("aria-pressed", "true")
    assert len(Lexicon.load(explorer.folder / "identical" / "corrections.tsv")) == 3


def share_right(folder: Path, gold: dict[str, list[str]]) -> float:
    found = Alignment.load(folder).translate(list(gold), k=1)
    return sum(found[word][0].word in answers for word, answers in gold.items()) / len(gold)


def test_corrections_make_the_alignment_better_on_other_words(explorer: Explorer, page: Any) -> None:
    """Accept the pairs of one half of the lexicon on the page, and evaluate with the held-out half."""
    page.goto(explorer.address("#/table"))
    expect(at(page, "row")).to_have_count(50)
    at(page, "mark-by-lexicon").click()
    at(page, "cancel").click()
    expect(at(page, "marks")).to_have_text("0 accepted, 0 rejected")
    at(page, "mark-by-lexicon").click()
    at(page, "answer-all").click()
    expect(at(page, "marks")).not_to_have_text("0 accepted, 0 rejected")
    at(page, "realign").click()
    expect(at(page, "compare-new")).to_be_visible(timeout=90_000)
    made = explorer.session.get(len(explorer.session.workspaces) - 1)
    before, after = (share_right(folder, explorer.gold) for folder in (explorer.folder / "demo", made.folder))
    assert len(explorer.gold) > 300
    assert after > before, f"P@1 on {len(explorer.gold)} held-out words: {before:.3f} before, {after:.3f} after"
    at(page, "compare-new").click()
    expect(at(page, "compare-summary")).to_contain_text("demo-corrected", timeout=30_000)
    # All words of the lexicon were taught: none is left to score with.
    expect(at(page, "left-out")).to_contain_text("no words are left to score with")
    page.goto(explorer.address(f"#/about?a={len(explorer.session.workspaces) - 1}"))
    expect(at(page, "about-score")).to_contain_text("no words are left to score with")


def test_marks_are_taken_back_and_cleared(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address("#/table?a=1&first=100"))
    expect(at(page, "row")).to_have_count(50)
    at(page, "accept").nth(7).click()
    expect(at(page, "clear")).to_be_enabled()
    before = at(page, "marks").inner_text()
    at(page, "clear").click()
    at(page, "answer-clear").click()
    expect(at(page, "marks")).to_have_text("0 accepted, 0 rejected")
    at(page, "undo").click()
    expect(at(page, "marks")).to_have_text(before)


def test_a_typed_answer_is_pinned(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address("#/word?a=1&w=water"))
    expect(at(page, "asked")).to_have_text("water")
    known = at(page, "translation-word").all_inner_texts()
    typed = "libro"
    assert typed not in known
    at(page, "answer").fill("no such word")
    at(page, "accept-answer").click()
    expect(at(page, "toast")).to_contain_text("'no such word' is not among the 1,500 words")
    at(page, "answer").fill(typed)
    at(page, "accept-answer").click()
    expect(at(page, "translation-word").first).to_have_text(typed)
    expect(at(page, "why-pinned")).to_contain_text("You accepted libro")
    page.goto(explorer.address("#/table?a=1&q=water"))
    expect(at(page, "row").first).to_contain_text("libro")
    expect(at(page, "pinned").first).to_be_visible()


def test_two_alignments_are_compared(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address("#/compare?a=0&b=1"))
    expect(at(page, "compare-summary")).to_contain_text("of 1,500 words alike")
    expect(at(page, "compare-row").first).to_be_visible()
    before = at(page, "compare-total").inner_text()
    at(page, "compare-shown").select_option("first")
    expect(at(page, "compare-total")).not_to_have_text(before)
    at(page, "alignment").select_option("1")
    expect(at(page, "compare-a")).to_have_value("1")


def test_words_are_text_wherever_they_come_from(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address(f"#/word?w={MARKUP.replace('=', '%3D')}"))
    expect(at(page, "asked")).to_have_text(MARKUP)
    page.goto(explorer.address("#/table?q=onerror"))
    expect(at(page, "row").first).to_contain_text(MARKUP)
    at(page, "filter-text").fill("<b>x</b>")
    expect(at(page, "count")).to_contain_text("0 of 1,500")
    page.goto(explorer.address("#/map"))
    expect(page.locator(".map[data-ready=yes]")).to_be_visible()
    at(page, "map-search").fill(MARKUP)
    page.keyboard.press("Enter")
    expect(at(page, "panel-word")).to_have_text(MARKUP)
    page.goto(explorer.address("#/word?w=%3Cscript%3Ealert(1)%3C/script%3E"))
    expect(at(page, "unknown")).to_contain_text("<script>alert(1)</script>")
    assert page.locator("img").count() == 0


def test_a_wrong_token_is_refused(explorer: Explorer, browser: Any) -> None:
    page = browser.new_page()
    answer = page.goto(f"http://127.0.0.1:{explorer.server.server_port}/wrong/")
    assert answer.status == 403
    expect(page.get_by_role("heading")).to_have_text("Forbidden")
    expect(page.locator("main")).to_contain_text("the token in the address is wrong")
    page.close()


def test_an_address_without_its_final_slash_opens(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address().rstrip("/") + "#/word?w=house")
    expect(at(page, "asked")).to_have_text("house")


def test_back_returns_to_the_word_the_page_and_the_row(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address("#/word?w=house"))
    expect(at(page, "asked")).to_have_text("house")
    at(page, "search").fill("water")
    page.keyboard.press("Enter")
    expect(at(page, "asked")).to_have_text("water")
    page.go_back()
    expect(at(page, "asked")).to_have_text("house")
    page.goto(explorer.address("#/table"))
    expect(at(page, "row")).to_have_count(50)
    at(page, "next").click()
    expect(at(page, "count")).to_contain_text("51–100")
    for _ in range(30):
        page.keyboard.press("j")
    expect(page.locator("tr.here")).to_contain_text("81")
    page.wait_for_timeout(200)
    before = page.evaluate("() => scrollY")
    assert before > 0
    page.keyboard.press("Enter")
    expect(at(page, "asked")).to_be_visible()
    page.go_back()
    expect(page.locator("tr.here")).to_contain_text("81")
    page.wait_for_function(f"() => Math.abs(scrollY - {before}) < 2")
    page.go_back()
    expect(at(page, "count")).to_contain_text("1–50")


def test_the_keys_go_on_after_the_last_row_and_pages_have_an_end(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address("#/table?row=49"))
    expect(page.locator("tr.here")).to_contain_text("50")
    page.keyboard.press("j")
    expect(page.locator("tr.here td").first).to_have_text("51")
    page.keyboard.press("k")
    expect(page.locator("tr.here td").first).to_have_text("50")
    for number in ("9999", "-3", "nonsense"):
        page.goto(explorer.address(f"#/table?page={number}"))
        expect(at(page, "count")).to_contain_text("1,451–1,500" if number == "9999" else "1–50")


def test_the_page_goes_on_after_a_restart_with_the_same_token(explorer: Explorer, browser: Any) -> None:
    server = ExplorerServer(explorer.session)
    Thread(target=server.serve_forever, daemon=True).start()
    page = browser.new_page()
    page.goto(server.address + "#/word?w=house")
    expect(at(page, "asked")).to_have_text("house")
    server.shutdown()
    server.server_close()
    page.context.set_offline(True)  # closes the connections that the browser holds open
    page.context.set_offline(False)
    at(page, "search").fill("water")
    page.keyboard.press("Enter")
    expect(at(page, "lost")).to_contain_text("does not answer")
    again = ExplorerServer(explorer.session, server.server_port, token=server.token)
    Thread(target=again.serve_forever, daemon=True).start()
    expect(at(page, "lost")).to_be_hidden()
    expect(at(page, "asked")).to_have_text("water")
    page.close()
    again.shutdown()
    again.server_close()


VIEWS = ("word", "word?w=house", "word?w=nothing", "table", "suspects", "compare?a=0&b=1", "about", "map?w=src%3Ahouse")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(explorer: Explorer, browser: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = browser.new_page(viewport={"width": 1200, "height": 800}, color_scheme=scheme, bypass_csp=True)
    for view in VIEWS:
        page.goto(explorer.address(f"#/{view}"))
        page.reload()
        page.locator("main[data-ready]").wait_for()
        page.wait_for_timeout(500)
        assert page.get_by_role("heading", level=1).count() == 1, view
        response = axe.Axe().run(page).response
        assert len(response["passes"]) > 10, view
        found = response["violations"]
        assert [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in found] == [], view
    page.close()


def test_words_have_a_language_and_links_in_texts_are_underlined(explorer: Explorer, page: Any) -> None:
    page.goto(explorer.address("#/word?w=house"))
    expect(at(page, "asked")).to_have_attribute("lang", "en")
    expect(at(page, "translation-word").first.locator("bdi")).to_have_attribute("lang", "es")
    underlined = "(node) => getComputedStyle(node).textDecorationLine"
    assert at(page, "on-map").evaluate(underlined) == "underline"


@pytest.fixture
def texts(workspace: Workspace) -> Iterator[str]:
    """The address of an explorer of items with long texts and a topic."""
    session = Session([with_items(workspace)])
    server = ExplorerServer(session)
    session.start()
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.address
    session.close()
    server.shutdown()
    server.server_close()


def test_items_show_their_texts_and_metadata(texts: str, page: Any) -> None:
    page.goto(texts)
    at(page, "search").fill("paragraph 7 of")
    expect(at(page, "completion").first).to_contain_text("Paragraph 7 of src")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(at(page, "asked")).to_contain_text("Paragraph 7 of src")
    expect(at(page, "translation-word").first).to_contain_text("Paragraph 7 of tgt")
    expect(at(page, "metadata")).to_contain_text("news")
    assert "w=s7" in page.url
    page.goto(f"{texts}#/table")
    expect(at(page, "row").first).to_contain_text("Paragraph 0 of src")
    at(page, "filter-metadata").select_option(label="topic: law")
    expect(at(page, "count")).to_contain_text("134 of 400 pairs")
    page.goto(f"{texts}#/map?color=meta%3Atopic")
    expect(at(page, "legend")).to_contain_text("sports")
    assert page.evaluate(NOT_BLANK)[1] > 3


@pytest.mark.parametrize("width", [1440, 820, 390])
def test_long_items_leave_the_columns_in_view(texts: str, browser: Any, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(f"{texts}#/table")
    expect(at(page, "row")).to_have_count(50)
    mark = at(page, "accept").first.bounding_box()
    assert mark["x"] + mark["width"] <= width
    text = at(page, "row-tgt").first
    assert text.bounding_box()["height"] < 60  # two lines
    assert text.evaluate("(node) => node.scrollHeight > node.clientHeight")
    page.goto(f"{texts}#/word?w=s7")
    expect(at(page, "asked")).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    page.close()


def test_light_and_dark_help_and_a_narrow_screen(explorer: Explorer, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
    page.set_default_timeout(15_000)
    page.goto(explorer.address("#/word?w=house"))
    expect(at(page, "asked")).to_have_text("house")
    paint = "() => getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paint)
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("t")
    light = page.evaluate(paint)
    assert light != dark
    page.reload()  # the choice is remembered
    expect(at(page, "asked")).to_have_text("house")
    assert page.evaluate(paint) == light
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("?")
    expect(at(page, "shortcuts")).to_contain_text("Keyboard")
    page.keyboard.press("Escape")
    expect(at(page, "shortcuts")).to_be_hidden()
    for view in ("word?w=house", "table", "suspects", "about", "compare", "map"):
        page.goto(explorer.address(f"#/{view}"))
        page.wait_for_timeout(300)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390, view
    page.close()
