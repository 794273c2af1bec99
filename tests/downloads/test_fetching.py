"""Downloads from a misbehaving server give the right file, or a clear error and no finished file."""

from __future__ import annotations

import gzip
import json
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from qwp.downloads.catalogue import Item, item
from qwp.downloads.fetching import Listener, LocalFile, download, find_local, import_file, open_partial
from qwp.downloads.folders import read_record
from qwp.downloads.http import FileVersion, HttpConfig
from qwp.errors import InputError
from qwp.spaces import io
from tests.downloads.conftest import CRAWL, FILES, MUSE, PACKED, PAIRS, VECTORS, WIKI, WORDS, cut, expected
from tests.downloads.server import Plan, Served

ALL = 1_000_000
QUICK = HttpConfig(timeout=5.0, waits=(0.0, 0.0, 0.0), sleep=lambda seconds: None)
HTML = b"<!DOCTYPE html>\n<html><body>Please log in</body></html>\n" * 40
KINDS = [WIKI, CRAWL, MUSE]
XLING = item("xling:en-de.train")
YACLE = b"".join(b"house%d\tHaus%d\n" % (number, number) for number in range(5000))
# Size of the first 19 of 20 pairs.
PAIRS_19_OF_20 = len(b"".join(PAIRS.splitlines(keepends=True)[:475]))


def label(value: object) -> str:
    """Return the name of a test case: the values of a plan that differ from the defaults."""
    if isinstance(value, Item):
        return value.name
    usual = Plan().__dict__
    plans = value if isinstance(value, list) else [value] if isinstance(value, Plan) else []
    said = [f"{key} {str(value)[:20]}" for plan in plans for key, value in plan.__dict__.items() if value != usual[key]]
    return ", ".join(said) or str(value)


def fetch(server: Served, folder: Path, wanted: Item, max_words: int = ALL, **how: object) -> LocalFile:
    config = HttpConfig(**{**QUICK.__dict__, **how})
    return download(wanted, folder, max_words=max_words, base=server.url, config=config)


def finished(folder: Path) -> list[str]:
    """Return the names of finished files and records."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and ".part" not in path.name)


def parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.part*"))


def check(found: LocalFile, folder: Path, max_words: int = ALL) -> None:
    """Assert that the file equals that of an undisturbed download, and that no other file exists."""
    assert found.path.read_bytes() == expected(found.item, max_words)
    assert parts(folder) == []
    assert found.record is not None
    assert found.record.describes(found.path)
    assert finished(folder) == [found.path.name, f"{found.path.name}.json"]


def refused(server: Served, folder: Path, wanted: Item, **how: object) -> str:
    with pytest.raises(InputError) as caught:
        fetch(server, folder, wanted, **how)  # type: ignore[arg-type]
    assert finished(folder) == []
    assert find_local(wanted, folder, 1) is None
    return str(caught.value)


@pytest.mark.parametrize("max_words", [1, WORDS, ALL])
@pytest.mark.parametrize("wanted", KINDS, ids=label)
def test_an_undisturbed_download(server: Served, tmp_path: Path, wanted: Item, max_words: int) -> None:
    found = fetch(server, tmp_path, wanted, max_words)
    check(found, tmp_path, max_words)
    assert found.record is not None
    assert found.record.whole == (wanted is MUSE or max_words >= WORDS)
    assert found.fetched
    assert len(server.asked) == 1
    if wanted is not MUSE:
        loaded = io.load(found.path)
        assert len(loaded) == min(max_words, WORDS) == found.record.entries


def test_the_connection_is_closed_after_the_last_needed_word(server: Served, tmp_path: Path) -> None:
    big = VECTORS.replace(b"300 20", b"90000 20", 1) + VECTORS.partition(b"\n")[2] * 299
    server.files[f"/{WIKI.remote}"] = big
    found = fetch(server, tmp_path, WIKI, 50)
    assert found.path.read_bytes() == cut(VECTORS, 50)
    assert len(big) > 15_000_000
    assert server.sent < len(big) / 2


@pytest.mark.parametrize("wanted", KINDS, ids=label)
@pytest.mark.parametrize("seed", range(4))
def test_connections_that_break_anywhere(server: Served, tmp_path: Path, wanted: Item, seed: int) -> None:
    """As long as bytes arrive each time, with ETags or dates, with ranges or from the beginning."""
    rng = random.Random(f"{wanted.name} {seed}")
    size = len(FILES[wanted])
    tag = {"etag": None, "last_modified": "Mon, 02 Jan 2017 00:00:00 GMT"} if seed % 2 else {}
    server.plans = [Plan(stop=rng.randrange(1, size), **tag) for _ in range(rng.randrange(1, 6))]  # type: ignore[arg-type]
    server.usual = Plan(**tag)  # type: ignore[arg-type]
    max_words = rng.choice([ALL, WORDS, rng.randrange(1, WORDS)])
    check(fetch(server, tmp_path, wanted, max_words), tmp_path, max_words)


@pytest.mark.parametrize("seed", range(3))
def test_interrupted_downloads_continue(server: Served, tmp_path: Path, seed: int) -> None:
    """Interrupt after a random number of reports, each time with another number of words."""
    rng = random.Random(seed)
    wanted = rng.choice([WIKI, CRAWL])
    server.files[f"/{wanted.remote}"] = data = FILES[wanted]

    def stop(entries: int, total: int | None, size: int) -> None:
        raise KeyboardInterrupt

    for _ in range(3):
        server.plans = [Plan(stop=rng.randrange(1, len(data) // 4))]
        with pytest.raises(KeyboardInterrupt):
            download(wanted, tmp_path, max_words=ALL, base=server.url, config=QUICK, listener=Listener(progress=stop))
        assert finished(tmp_path) == []
        assert parts(tmp_path) == ["en.vec.part", "en.vec.part.json"]
    max_words = rng.choice([ALL, 200])
    check(fetch(server, tmp_path, wanted, max_words), tmp_path, max_words)


def test_only_the_rest_is_requested(server: Served, tmp_path: Path) -> None:
    server.plans = [Plan(stop=5000)]
    check(fetch(server, tmp_path, CRAWL), tmp_path)
    assert server.asked[1:] == [(f"/{CRAWL.remote}", "bytes=5000-", '"one"')]
    assert server.sent == len(PACKED)


BROKEN = Plan(stop=3000)


@pytest.mark.parametrize(
    "plans",
    [
        [BROKEN, Plan(ranges="ignored")],
        [BROKEN, Plan(ranges="wrong")],
        [BROKEN, Plan(ranges="other")],
        [BROKEN, Plan(ranges="refused")],
        [Plan(stop=3000, etag='"older"')],
        [Plan(stop=3000, etag='W/"weak"')],
        [Plan(stop=3000, etag=None)],
        [Plan(stop=0), Plan(stop=0)],
        [Plan(length=10**9)],
        [Plan(length=2000)],
        [Plan(chunked=True, stop=3000)],
        [Plan(status=500), Plan(status=404)],
        [Plan(status=503), Plan(status=429), Plan(status=502)],
        [Plan(body=HTML)],
        [Plan(redirect="/elsewhere"), Plan(status=404)],
    ],
    ids=label,
)
def test_transient_failures_are_retried(server: Served, tmp_path: Path, plans: list[Plan]) -> None:
    for wanted in (CRAWL, MUSE):
        server.plans = list(plans)
        check(fetch(server, tmp_path / wanted.source.name, wanted), tmp_path / wanted.source.name)


@pytest.mark.parametrize("wanted", [WIKI, CRAWL], ids=label)
@pytest.mark.parametrize("stop", [None, 3000])
def test_vectors_without_a_known_length(server: Served, tmp_path: Path, wanted: Item, stop: int | None) -> None:
    """The header has the number of words."""
    server.plans = [Plan(length=None, stop=stop)]
    check(fetch(server, tmp_path, wanted), tmp_path)


@pytest.mark.parametrize(
    ("wanted", "usual", "message"),
    [
        (MUSE, Plan(length=None), "it may be incomplete"),
        (MUSE, Plan(length=PAIRS_19_OF_20), f"has {len(PAIRS):,} bytes, and the server reports {PAIRS_19_OF_20:,}"),
        (MUSE, Plan(length=2005), f"has {len(PAIRS):,} bytes, and the server reports 2,005"),
        (MUSE, Plan(length=2005, stop=2005), "ends inside of a line"),
        (MUSE, Plan(body=PAIRS[:-1]), "ends inside of a line"),
        (XLING, Plan(body=YACLE.removesuffix(b"house4999\tHaus4999\n")), "it ends after 4,999 of 5,000 pairs"),
        (WIKI, Plan(body=VECTORS[:2000]), "it ends after 11 of 300 words, inside of a line"),
        (WIKI, Plan(body=VECTORS[:-3]), "it ends after 299 of 300 words, inside of a line"),
        (MUSE, Plan(length=10**9), "does not continue the file at the requested position"),
        (CRAWL, Plan(body=PACKED[:3000]), "ends inside of its compressed data"),
        (CRAWL, Plan(length=None, stop=3000, etag=None), "ends inside of its compressed data"),
        (WIKI, Plan(stop=3000, ranges="wrong"), "does not continue the file at the requested position"),
        (WIKI, Plan(stop=3000, etag=None), "the connection ended after 3,000 of"),
        (WIKI, Plan(status=404), "check the name en, https://fasttext.cc"),
        (WIKI, Plan(status=500), "the server answered 500"),
        (WIKI, Plan(status=403), "was refused: the server answered 403"),
        (WIKI, Plan(body=HTML), "begins like a web page"),
        (CRAWL, Plan(body=HTML), "not a gzip file"),
        (CRAWL, Plan(body=VECTORS), "not a gzip file"),
        (WIKI, Plan(body=PACKED), "begins like gzip inside gzip"),
        (MUSE, Plan(body=HTML), "it is a web page"),
        (MUSE, Plan(body=b"one\nword\na\nline\n"), "do not hold two words"),
        (WIKI, Plan(body=b""), "empty"),
        (MUSE, Plan(body=b""), "empty"),
        (WIKI, Plan(body=b"3 2\na 1 2\nb 1 2\n"), "it ends after 2 of 3 words"),
        (WIKI, Plan(body=b"3 2\na 1 2\nb 1\nc 1 2\n"), "the line of word 2 does not hold a word and 2 numbers"),
        (WIKI, Plan(body=b"3 2\na 1 2\n" + b"b" * 10**6), "the line of word 2 is longer than"),
        (WIKI, Plan(redirect="ftp://127.0.0.1/x"), "which is not protected"),
        (WIKI, Plan(redirect="/fasttext/vectors-wiki/wiki.en.vec"), "redirect"),
        (WIKI, Plan(delay=0.3), "no answer in time"),
    ],
    ids=label,
)
def test_lasting_failures_are_explained(
    server: Served, tmp_path: Path, wanted: Item, usual: Plan, message: str
) -> None:
    server.usual = usual
    server.files[f"/{XLING.remote}"] = YACLE
    assert message in refused(server, tmp_path, wanted, timeout=0.05 if usual.delay else 5.0)
    server.usual = Plan()
    assert fetch(server, tmp_path, wanted).path.read_bytes() == (YACLE if wanted is XLING else expected(wanted, ALL))
    assert parts(tmp_path) == []


def test_the_count_of_vectors_overrides_a_wrong_length(server: Served, tmp_path: Path) -> None:
    server.usual = Plan(length=2000)
    for wanted in (WIKI, CRAWL):
        check(fetch(server, tmp_path / wanted.source.name, wanted), tmp_path / wanted.source.name)


def test_a_changed_length_is_refused(server: Served, tmp_path: Path) -> None:
    """A version of a file has one length: the same ETag with another length is refused."""
    shorter = Plan(body=PAIRS.partition(b"\nword400")[0] + b"\n", ranges="ignored")
    server.plans = [Plan(stop=3000), shorter]
    assert "the server reports" in refused(server, tmp_path, MUSE)
    assert parts(tmp_path) == []
    server.plans = [Plan(stop=3000)]
    server.usual = replace(shorter, etag='"two"')
    assert fetch(server, tmp_path, MUSE).path.read_bytes() == shorter.body


TRICKLE = {"min_rate": 1e6, "rate_period": 0.02, "waits": (0.0,)}


def test_slow_transfers_are_stopped(server: Served, tmp_path: Path) -> None:
    """No byte times out, but the file would never be complete."""
    server.usual = Plan(trickle=True, length=10**9, ranges="ignored")
    for wanted in (WIKI, MUSE):
        assert "less than 1,000,000 bytes per second" in refused(server, tmp_path, wanted, **TRICKLE)
    server.usual = Plan()
    assert fetch(server, tmp_path, WIKI).path.read_bytes() == VECTORS


def test_a_byte_per_connection_is_too_slow(server: Served, tmp_path: Path) -> None:
    server.usual = Plan(stop=1)
    assert "bytes per second" in refused(server, tmp_path, WIKI, **TRICKLE, sleep=lambda seconds: time.sleep(0.03))
    server.usual = Plan()
    check(fetch(server, tmp_path, WIKI), tmp_path)


@pytest.mark.parametrize("place", [0.01, 0.5, 0.999])
def test_damaged_gzip(server: Served, tmp_path: Path, place: float) -> None:
    at = int(len(PACKED) * place)
    server.usual = Plan(body=PACKED[:at] + bytes([PACKED[at] ^ 0x55]) + PACKED[at + 1 :])
    text = refused(server, tmp_path, CRAWL)
    assert "has unexpected content" in text
    assert parts(tmp_path) == []


def test_gzip_in_several_members_and_padded(server: Served, tmp_path: Path) -> None:
    body = gzip.compress(VECTORS[:4000]) + gzip.compress(VECTORS[4000:]) + bytes(100)
    server.usual = Plan(body=body)
    server.plans = [Plan(body=body, stop=2500)]
    check(fetch(server, tmp_path, CRAWL), tmp_path)


def test_a_damaged_partial_file_is_downloaded_again(server: Served, tmp_path: Path) -> None:
    server.usual = Plan(stop=4000, etag='"one"', ranges="refused", length=len(PACKED))
    with pytest.raises(InputError):
        fetch(server, tmp_path, CRAWL, waits=())
    part = tmp_path / "crawl" / "en.vec.part"
    assert part.stat().st_size == 4000
    part.write_bytes(bytes(4000))
    server.usual = Plan()
    check(fetch(server, tmp_path, CRAWL), tmp_path)


@pytest.mark.parametrize("notes", [b"", b"{}", b"[]", b"not json", b'{"url": 1}', None])
def test_a_partial_file_without_metadata_is_ignored(server: Served, tmp_path: Path, notes: bytes | None) -> None:
    (tmp_path / "wiki").mkdir()
    (tmp_path / "wiki" / "en.vec.part").write_bytes(b"300 20\nother 1 2\n")
    if notes is not None:
        (tmp_path / "wiki" / "en.vec.part.json").write_bytes(notes)
    check(fetch(server, tmp_path, WIKI), tmp_path)
    assert server.asked[0][1] is None


def test_a_complete_partial_file_needs_no_request(server: Served, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        download(WIKI, tmp_path, max_words=ALL, base=server.url, listener=Listener(progress=_at_the_end))
    assert finished(tmp_path) == []
    server.asked.clear()
    check(fetch(server, tmp_path, WIKI), tmp_path)
    assert server.asked == []


def _at_the_end(entries: int, total: int | None, size: int) -> None:
    if size == len(VECTORS):
        raise KeyboardInterrupt


def test_a_partial_file_of_another_address_is_not_continued(server: Served, tmp_path: Path) -> None:
    server.plans = [Plan(stop=3000)]
    with pytest.raises(InputError, match="was interrupted"):
        fetch(server, tmp_path, WIKI, waits=())
    server.files[f"/mirror/{WIKI.remote}"] = VECTORS
    found = download(WIKI, tmp_path, max_words=ALL, base=f"{server.url}/mirror/", config=QUICK)
    check(found, tmp_path)
    assert server.asked[-1] == (f"/mirror/{WIKI.remote}", None, None)


def test_only_one_process_downloads_a_file(server: Served, tmp_path: Path) -> None:
    (tmp_path / "wiki").mkdir()
    with open_partial(tmp_path / "wiki" / "en.vec"):
        assert "is being downloaded by another process" in refused(server, tmp_path, WIKI)


def test_a_redirection_is_followed_with_its_range(server: Served, tmp_path: Path) -> None:
    server.files["/elsewhere"] = VECTORS
    server.plans = [Plan(redirect="/elsewhere"), Plan(stop=3000), Plan(redirect="/elsewhere")]
    check(fetch(server, tmp_path, WIKI), tmp_path)
    assert server.asked[-1] == ("/elsewhere", "bytes=3000-", '"one"')


def test_a_missing_network_is_explained(tmp_path: Path, server: Served) -> None:
    server.url = "http://127.0.0.1:9"  # no server listens on this port
    text = refused(server, tmp_path, CRAWL)
    assert text.startswith("http://127.0.0.1:9/fasttext/vectors-crawl/cc.en.300.vec.gz cannot be downloaded: ")
    assert "`qwp data download crawl:en --from FOLDER`" in text
    assert f"put there as {tmp_path / 'crawl' / 'en.vec'} (unpacked)" in text


def test_waits_grow_and_begin_anew_where_more_came(server: Served, tmp_path: Path) -> None:
    waited: list[float] = []
    server.plans = [Plan(status=500), Plan(status=500), Plan(stop=1000), Plan(status=500)]
    fetch(server, tmp_path, WIKI, waits=(1.0, 2.0, 4.0), sleep=waited.append)
    assert waited == [1.0, 2.0, 1.0, 2.0]


# --------------------------------------------------------------------------- what is there already


def test_existing_files_are_not_downloaded(server: Served, tmp_path: Path) -> None:
    fetch(server, tmp_path, WIKI, 100)
    assert find_local(WIKI, tmp_path, 100) is not None
    assert find_local(WIKI, tmp_path, 50) is not None
    notes: list[str] = []
    assert find_local(WIKI, tmp_path, 101, notes.append) is None
    assert "has 100 words, 101 are needed" in notes[0]
    fetch(server, tmp_path, WIKI, ALL)
    assert find_local(WIKI, tmp_path, 2 * ALL) is not None  # the server has no more


def test_changed_files_are_downloaded_again(server: Served, tmp_path: Path) -> None:
    found = fetch(server, tmp_path, WIKI)
    data = bytearray(found.path.read_bytes())
    data[500] ^= 1
    found.path.write_bytes(data)
    notes: list[str] = []
    assert find_local(WIKI, tmp_path, 1, notes.append) is None
    assert "has changed since its download" in notes[0]


def test_a_file_put_there_by_hand_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "wiki").mkdir()
    (tmp_path / "wiki" / "en.vec").write_bytes(b"1 1\na 1\n")
    found = find_local(WIKI, tmp_path, 200_000)
    assert found is not None
    assert found.record is None


def test_a_failed_fetch_leaves_the_older_file(server: Served, tmp_path: Path) -> None:
    found = fetch(server, tmp_path, WIKI, 100)
    server.usual = Plan(body=HTML)
    with pytest.raises(InputError):
        fetch(server, tmp_path, WIKI)
    assert found.path.read_bytes() == expected(WIKI, 100)
    assert read_record(found.path) == found.record


# --------------------------------------------------------------------------- files at hand


@pytest.mark.parametrize(
    ("wanted", "name", "data"),
    [
        (WIKI, "wiki.en.vec", VECTORS),
        (WIKI, "wiki.en.vec.gz", PACKED),
        (CRAWL, "cc.en.300.vec.gz", PACKED),
        (CRAWL, "cc.en.300.vec", VECTORS),
        (MUSE, "en-es.txt", PAIRS),
    ],
)
@pytest.mark.parametrize("max_words", [70, ALL])
def test_files_at_hand(tmp_path: Path, wanted: Item, name: str, data: bytes, max_words: int) -> None:
    (tmp_path / "hand").mkdir()
    (tmp_path / "hand" / name).write_bytes(data)
    found = import_file(wanted, tmp_path / "data", tmp_path / "hand", max_words=max_words)
    assert found.path.read_bytes() == expected(wanted, max_words)
    assert found.record is not None
    assert found.record.describes(found.path)


def test_missing_and_damaged_files_to_import_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no wiki\.en\.vec or wiki\.en\.vec\.gz, expected the file of https://dl"):
        import_file(WIKI, tmp_path / "data", tmp_path, max_words=ALL)
    (tmp_path / "en-es.txt").write_bytes(HTML)
    with pytest.raises(InputError, match="it is a web page"):
        import_file(MUSE, tmp_path / "data", tmp_path, max_words=ALL)
    for end in (5000, -3):
        (tmp_path / "wiki.en.vec").write_bytes(VECTORS[:end])
        with pytest.raises(InputError, match="of 300 words, inside of a line"):
            import_file(WIKI, tmp_path / "data", tmp_path, max_words=ALL)
    assert finished(tmp_path / "data") == []


def test_a_folder_that_cannot_be_created_is_explained(tmp_path: Path, server: Served) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be created"):
        fetch(server, tmp_path / "file", item("es"))


def test_progress_is_reported(server: Served, tmp_path: Path) -> None:
    told: list[tuple[int, int | None, int]] = []
    notes: list[str] = []
    listener = Listener(notes.append, lambda *event: told.append(event))
    server.plans = [Plan(stop=10_000)]
    download(WIKI, tmp_path, max_words=ALL, base=server.url, config=QUICK, listener=listener)
    assert told[-1] == (WORDS, WORDS, len(VECTORS))
    assert [entries for entries, _, _ in told] == sorted(entries for entries, _, _ in told)
    assert notes == [
        f"en: the connection ended after 10,000 of {len(VECTORS):,} bytes; trying again in 0 s",
        "en: continued after 0.0 MB",
    ]


ONE = FileVersion("http://x/y", '"a"', "Mon", 100)


def test_partial_files_are_restored(tmp_path: Path) -> None:
    target = tmp_path / "x.vec"
    with open_partial(target) as part:
        part.begin(ONE)
        part.append(b"abc")
    with open_partial(target) as part:
        assert (part.origin, part.size, b"".join(part.pieces())) == (ONE, 3, b"abc")
        part.append(b"de")
        assert b"".join(part.pieces()) == b"abcde"
        part.begin(ONE.with_length(7))
        assert (part.size, part.origin) == (0, ONE.with_length(7))
    assert list(tmp_path.iterdir()) == []  # empty partial files are removed


@pytest.mark.parametrize(
    "change", [{"url": 1}, {"etag": 1}, {"length": "x"}, {"length": -1}, {"length": True}, {"more": 1}]
)
def test_invalid_metadata_is_ignored(tmp_path: Path, change: dict[str, object]) -> None:
    target = tmp_path / "x.vec"
    with open_partial(target) as part:
        part.begin(ONE)
        part.append(b"abc")
    notes = tmp_path / "x.vec.part.json"
    notes.write_text(json.dumps({**json.loads(notes.read_text()), **change}))
    with open_partial(target) as part:
        assert (part.origin, part.size) == (None, 0)


def test_partial_files_are_locked(tmp_path: Path) -> None:
    target = tmp_path / "x.vec"
    with open_partial(target), pytest.raises(InputError, match="another process"), open_partial(target):
        pass
