"""`qwp data`: public vectors and dictionaries, downloaded on request."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.cli import console, options
from qwp.cli.options import action, option
from qwp.downloads.catalogue import PAIRS, SOURCES, VECTORS, Item, checked_base, item, item_of, items
from qwp.downloads.fetching import Listener, LocalFile, download, find_local, import_file
from qwp.downloads.folders import data_folder, existing_path, read_record
from qwp.errors import InputError
from qwp.showing import terminal
from qwp.showing.bar import words_bar
from qwp.spaces.io.arguments import as_count

LIST, DOWNLOAD, PATH = ACTIONS = ("list", "download", "path")
MAX_VOCAB = 200_000
_SECONDS_BETWEEN_LINES = 10.0


@dataclass(frozen=True)
class DataOptions:
    """Options that say what to download, and where files are."""

    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="A language (en, crawl:en), a pair (en-es, xling:en-de) or a part of one (en-es.train, en-es.test).",
        ),
    ] = None
    max_vocab: int = option("Keep only the first N words of vectors.", "N", MAX_VOCAB)
    files: Path | None = option("Take the files from this folder instead of the network.", "DIR", flags=["--from"])
    data: Path | None = option("Folder of the data. (default: QWP_DATA, or the cache folder of the system)", "DIR")
    base_url: str | None = option("Download from a mirror that has the same paths.", "URL")
    force: bool = option("Download files again that exist.", default=False)
    json: options.Json = False

    @property
    def folder(self) -> Path:
        """The folder of the data."""
        return data_folder(self.data)

    @property
    def base(self) -> str | None:
        """The address of the mirror."""
        return None if self.base_url is None else checked_base(self.base_url)

    def check(self, action: str) -> None:
        """Refuse options that the action does not use."""
        as_count("max_vocab", self.max_vocab)
        data_folder(self.data)
        given = {"--from": self.files, "--base-url": self.base, "--force": self.force or None}
        unused = [option for option, value in given.items() if value is not None]
        if action != DOWNLOAD and unused:
            raise InputError(f"{unused[0]} is for `qwp data download`; leave it out of `qwp data {action}`")
        if self.files is not None and self.base_url is not None:
            raise InputError("--from and --base-url name two places to take files from: leave one of them out")
        if action == LIST and self.names:
            raise InputError(f"`qwp data list` lists everything and takes no names; received {', '.join(self.names)}")
        if action == DOWNLOAD and not self.names:
            raise InputError("`qwp data download` was given no names; expected some, such as en es en-es")


@options.with_options
def command(action: Annotated[str, action(ACTIONS, "What to do.")], request: DataOptions) -> None:
    """List, fetch and find public vectors and dictionaries. Only `qwp data download` uses the network.

    `qwp data download en es en-es` downloads vectors of two languages and their dictionaries; `qwp align en es` then
    finds the vectors by these names. `qwp data path NAME` prints the path of a file, `qwp data path` the folder.

    Exit code 2: bad input, or no network; 130: interrupted, the same command continues.
    """
    request.check(action)
    about = _ACTIONS[action](request)
    if request.json:
        console.print_json({"command": "data", "action": action, "folder": str(request.folder), **about})


# --------------------------------------------------------------------------- list


def _list(request: DataOptions) -> dict[str, Any]:
    local = [_file_as_json(each, request.folder / each.file) for each in _local(request.folder)]
    if not request.json:
        for source in SOURCES.values():
            console.figures(
                [
                    ("what", source.what),
                    ("address", _shown_address(source.name)),
                    ("size", source.size),
                    ("licence", source.licence),
                    ("cite", source.cite),
                ],
                title=_shown_names(source.name),
            )
        if local:
            console.table(
                ("name", "file", "words or pairs", "MB"),
                [(f["name"], f["path"], _count(f["entries"]), f"{f['bytes'] / 1e6:,.1f}") for f in local],
                title=f"In {request.folder}",
            )
        else:
            console.say(f"{request.folder} is empty: `qwp data download en es en-es` downloads the files it names.")
    return {"sources": [_source_as_json(name) for name in SOURCES], "files": local}


def _shown_address(name: str) -> str:
    source = SOURCES[name]
    placeholder = "LANG" if source.kind == VECTORS else "PAIR"
    return source.base + next(iter(source.files.values())).format(placeholder)


def _shown_names(name: str) -> str:
    """Return example names of the files of a source."""
    source = SOURCES[name]
    what = "en" if source.kind == VECTORS else "en-de"
    return f"{name}: " + ", ".join(Item(source, what, part).name for part in source.files)


def _source_as_json(name: str) -> dict[str, Any]:
    source = SOURCES[name]
    plain = {key: getattr(source, key) for key in ("name", "kind", "what", "size", "licence", "cite", "page")}
    return {**plain, "address": _shown_address(name)}


def _local(folder: Path) -> list[Item]:
    """Return the files in the folder."""
    paths = [path for source in SOURCES for path in sorted((folder / source).glob("*")) if path.is_file()]
    found_items = [item_of(f"{path.parent.name}/{path.name}") for path in paths]
    return [each for each in found_items if each is not None]


def _file_as_json(each: Item, path: Path) -> dict[str, Any]:
    record = read_record(path)
    return {
        "name": each.name,
        "path": str(path),
        "entries": None if record is None else record.entries,
        "whole": None if record is None else record.whole,
        "bytes": path.stat().st_size,
        "sha256": None if record is None else record.sha256,
        "licence": each.source.licence,
        "cite": each.source.cite,
        "url": each.url() if record is None else record.url,
    }


def _count(entries: int | None) -> str:
    return "added by hand" if entries is None else f"{entries:,}"


# --------------------------------------------------------------------------- path


def _path(request: DataOptions) -> dict[str, Any]:
    paths = {name: str(existing_path(item(name), request.folder)) for name in request.names or []}
    if not request.json:
        for path in paths.values() if request.names else [str(request.folder)]:
            console.say(path, whole=True)
    return {"paths": paths}


# --------------------------------------------------------------------------- download


def _download(request: DataOptions) -> dict[str, Any]:
    wanted = list({each.file: each for name in request.names or [] for each in items(name)}.values())
    if request.files is not None and not request.files.is_dir():
        raise InputError(f"--from {request.files} is not a folder; expected one with files as published")
    for source in dict.fromkeys(each.source.name for each in wanted):
        about = SOURCES[source]
        terminal.note(f"{about.what} ({about.page}): licence {about.licence}; {about.size}. Cite {about.cite}.")
    done: list[LocalFile] = []
    for each in wanted:
        try:
            done.append(_fetched(each, request))
        except KeyboardInterrupt as error:
            message = f"interrupted at {each.name}: the downloaded part is kept, and the same command continues"
            raise console.interrupted(error, message) from None
    return {"files": [{**_file_as_json(h.item, h.path), "already_there": not h.fetched} for h in done]}


def _fetched(each: Item, request: DataOptions) -> LocalFile:
    done = None if request.force else find_local(each, request.folder, request.max_vocab, terminal.note)
    if done is None:
        with _DownloadProgress(each) as shown:
            if request.files is not None:
                done = import_file(
                    each, request.folder, request.files, max_words=request.max_vocab, listener=shown.listener
                )
            else:
                done = download(
                    each,
                    request.folder,
                    max_words=request.max_vocab,
                    base=request.base,
                    listener=shown.listener,
                )
    if not request.json:
        size = "" if done.record is None else f"{done.record.entries:,} {_unit(each)}, "
        console.say(f"{each.name}: {size}{'' if done.fetched else 'downloaded before, '}{done.path}", whole=True)
    return done


def _unit(each: Item) -> str:
    return "pairs" if each.source.kind == PAIRS else "words"


class _DownloadProgress:
    """Progress of a download: a bar on a terminal, a line every few seconds elsewhere; nothing for a dictionary."""

    def __init__(self, each: Item, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = each.name
        self._bar = words_bar(quiet=each.source.kind == PAIRS)
        self._clock = clock
        self._task: Any = None
        self._first: tuple[float, int] | None = None
        self._last_line = 0.0
        self.listener = Listener(lambda text: terminal.note(text), self._progress)

    def __enter__(self) -> _DownloadProgress:
        if not self._bar.disable:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._bar.disable:  # rich before 14.3 prints a blank line after a bar it never showed
            self._bar.stop()

    def _progress(self, entries: int, total: int | None, size: int) -> None:
        now = self._clock()
        if self._first is None:
            # Words of an earlier, interrupted download must not count into the rate.
            self._first, self._last_line = (now, entries), now
            self._task = self._bar.add_task(self._name, total=total, completed=entries)
        self._bar.update(self._task, completed=entries, total=total)
        if self._bar.disable and now - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = now
            terminal.note(self._line(entries, total, size, now))

    def _line(self, entries: int, total: int | None, size: int, now: float) -> str:
        assert self._first is not None
        rate = (entries - self._first[1]) / max(now - self._first[0], 1e-9)
        left = f", {terminal.seconds((total - entries) / rate)} left" if total and rate > 0 else ""
        of_all = f" of {total:,}" if total else ""
        return f"{self._name}: {entries:,}{of_all} words, {size / 1e6:,.1f} MB ({rate:,.0f} words/s{left})"


_ACTIONS: dict[str, Callable[[DataOptions], dict[str, Any]]] = {LIST: _list, DOWNLOAD: _download, PATH: _path}
