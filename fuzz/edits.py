"""Random edits of saved results: of their JSON, their arrays and whole files."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from qwp.results import checkpoints
from qwp.results.saved import ALIGNMENT, SEVERAL
from qwp.results.schema import digest, tensors_digest
from qwp.spaces.io.files import file_sha256

ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 10**19, 0.5, -0.0, 1e308, 5e-324, "", "x", "é", "\x1b[2J"),
    *("a" * 20_000, "../x", "..", "/etc/passwd", "\ud800", "\x00", [], {}, [[]], [None], {"": {}}, "unit", "center"),
    *(float("nan"), float("inf"), -float("inf"), "parts-0123456789abcdef", "f" * 64, 2, 99, "2"),
]

# --------------------------------------------------------------------------- JSON


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a JSON value, as keys from the top."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at] * bool(at) + [path for key, each in inner for path in paths(each, (*at, key))]


def _delete(holder: Any, key: Any, rng: random.Random) -> None:
    del holder[key]


def _replace(holder: Any, key: Any, rng: random.Random) -> None:
    holder[key] = rng.choice(ODD)


def _retype(holder: Any, key: Any, rng: random.Random) -> None:
    old = holder[key]
    size = len(str(old))
    holder[key] = rng.choice([str(old), [old], {"value": old}, {str(key): old}, bool(old), size, float(size)])


def _deepen(holder: Any, key: Any, rng: random.Random) -> None:
    for _ in range(rng.choice((3, 70, 900))):
        holder[key] = [holder[key]]


def _add(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder, dict):
        holder[rng.choice(["", "new", "schema", "parts", "sha256", "\x00"])] = rng.choice(ODD)
    else:
        holder.insert(rng.randrange(len(holder) + 1), rng.choice(ODD))


def _reverse(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder[key], (list, str)):
        holder[key] = holder[key][::-1]


def _shift(holder: Any, key: Any, rng: random.Random) -> None:
    """Change a number a little or much, or append a letter to a text."""
    old = holder[key]
    holder[key] = old + rng.choice((1, -1, 0.5, 1e300)) if type(old) in (int, float) else f"{old}x"


def _rename(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder, dict):
        holder[f"{key}_"] = holder.pop(key)


_IN_JSON = (_delete, _replace, _retype, _deepen, _add, _reverse, _shift, _rename)


def edit_json(value: Any, rng: random.Random) -> tuple[Any, str]:
    """Change a JSON value once. Returns the value and the change in words."""
    at = rng.choice(paths(value) or [()])
    if not at:
        return rng.choice(ODD), "everything replaced"
    holder = value
    for key in at[:-1]:
        holder = holder[key]
    way = rng.choice(_IN_JSON)
    way(holder, at[-1], rng)
    return value, f"{way.__name__.strip('_')} at {'.'.join(str(each) for each in at)}"


def edit_text(text: str, rng: random.Random) -> tuple[str, str]:
    """Put invalid or unusual JSON into the text of a file. Returns the text and the change in words."""
    depth = rng.choice((100, 2_000, 100_000))
    ways = {
        "a name twice": text.replace("{", '{"schema": 2, "schema": 2, ', 1),
        f"nested {depth} deep": "[" * depth + "]" * depth,
        "a number of 5000 digits": text.replace(": ", f": {'9' * 5_000}, ", 1),
        "cut": text[: rng.randrange(len(text) + 1)],
        "NaN": text.replace("0", "NaN", 1),
        "not UTF-8": text + "\udcff",
    }
    what = rng.choice(list(ways))
    return ways[what], what


# --------------------------------------------------------------------------- arrays


def edit_tensors(path: Path, rng: random.Random) -> str:
    """Change a tensor of a safetensors file. Returns the change in words."""
    tensors = load_file(path)
    name = rng.choice(sorted(tensors))
    old = tensors.pop(name)
    first = old.copy()
    first.flat[0] = rng.choice((np.nan, np.inf)) if old.dtype.kind == "f" else 0
    changed = old.copy()
    changed.flat[0] += 1
    ways: dict[str, dict[str, np.ndarray]] = {
        "remove": {},
        "nan": {name: first},
        "number": {name: changed},
        "transpose": {name: old.T},
        "cut": {name: old[:-1]},
        "reverse": {name: old[::-1]},
        "zero": {name: np.zeros_like(old)},
        "type": {name: old.astype(rng.choice(("f2", "f4", "f8", "i4", "i8", "u1", "?")))},
        "rename": {rng.choice(("src_mean_7", "tgt_map", "src_order", "other", "vectors")): old},
        "more": {name: old, rng.choice(("tgt_map", "src_order", "src_mean_1", "array.x")): old},
    }
    what = rng.choice(list(ways))
    tensors |= ways[what]
    save_file({key: np.ascontiguousarray(tensor) for key, tensor in tensors.items()}, path)
    return f"{what} {name}"


# --------------------------------------------------------------------------- folders


@dataclass
class FolderEdit:
    """Edits of a folder. other: a result of another run of the same kind. done: the edits in words."""

    folder: Path
    other: Path
    rng: random.Random
    done: list[str] = field(default_factory=list)
    resealed: bool = False

    def apply(self) -> None:
        """Edit one or two files."""
        index = self._json_in(ALIGNMENT, SEVERAL)
        ways: list[Callable[[Path], str]] = [*[index] * 3, *[self._json_in(".json")] * 3, self._tensors, self._swap]
        ways += [self._text, self._truncate, self._remove]
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            found = self._files(self.folder)
            if not found:
                return
            path = self.rng.choice(found)
            try:
                self.done.append(self.rng.choice(ways)(path))
            except Exception as error:  # the file is already broken, or its content does not allow the edit
                self.done.append(f"nothing ({type(error).__name__})")
        # With new hashes an edit looks like a save.
        if self.rng.random() < 0.4:
            self.resealed = reseal(self.folder) or self.resealed

    @staticmethod
    def _files(folder: Path) -> list[Path]:
        return [path for path in sorted(folder.rglob("*")) if path.is_file()]

    def _named(self, path: Path, what: str) -> str:
        return f"{path.relative_to(self.folder)}: {what}"

    def _json_in(self, *endings: str) -> Callable[[Path], str]:
        """Return an edit of a JSON file with such a name, or of the JSON in a checkpoint."""

        def edit(_: Path) -> str:
            found = [path for path in self._files(self.folder) if path.name.endswith(endings)]
            if not found:
                return self._metadata(self.folder / checkpoints.FILE_NAME)
            path = self.rng.choice(found)
            value, what = edit_json(json.loads(path.read_bytes()), self.rng)
            path.write_text(json.dumps(value, indent=1))
            return self._named(path, what)

        return edit

    def _text(self, path: Path) -> str:
        if path.suffix != ".json":
            return self._truncate(path)
        text, what = edit_text(path.read_text("utf-8", "surrogateescape"), self.rng)
        path.write_text(text, "utf-8", "surrogateescape")
        return self._named(path, what)

    def _metadata(self, path: Path) -> str:
        """Edit the JSON in a checkpoint, with a new hash or the old one."""
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        about = header["__metadata__"]
        value, what = edit_json(json.loads(about["about"]), self.rng)
        about["about"] = json.dumps(value)
        if self.rng.random() < 0.5:
            about["sha256"] = tensors_digest(about["about"], load_file(path))
            self.resealed = True
        text = json.dumps(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])
        return self._named(path, what)

    def _tensors(self, _: Path) -> str:
        path = self.rng.choice([path for path in self._files(self.folder) if path.suffix == ".safetensors"])
        return self._named(path, edit_tensors(path, self.rng))

    def _swap(self, path: Path) -> str:
        """Replace a file by one of another run, or by another file of this run."""
        source = self.other if self.rng.random() < 0.7 else self.folder
        found = [each for each in self._files(source) if each != path and each.suffix == path.suffix]
        other = self.rng.choice([each for each in found if each.name == path.name] or found)
        shutil.copyfile(other, path)
        return self._named(path, f"replaced by {other.parent.name}/{other.name}")

    def _truncate(self, path: Path) -> str:
        data = path.read_bytes()
        path.write_bytes(data[: self.rng.randrange(len(data) + 1)])
        return self._named(path, "truncated")

    def _remove(self, path: Path) -> str:
        path.unlink()
        return self._named(path, "removed")


def reseal(folder: Path) -> bool:
    """Update the hashes in all indexes below a folder. Returns whether that was possible."""
    try:
        for path in sorted(folder.rglob(ALIGNMENT)):
            index = json.loads(path.read_bytes())
            for name, about in index["parts"]["files"].items():
                part = path.parent / index["parts"]["folder"] / name
                about.update(sha256=file_sha256(part), bytes=part.stat().st_size)
            _seal(path, index)
        for path in sorted(folder.rglob(SEVERAL)):
            index = json.loads(path.read_bytes())
            for language in index["languages"]:
                language["sha256"] = json.loads((path.parent / language["name"] / ALIGNMENT).read_bytes())["sha256"]
            _seal(path, index)
    except Exception:
        return False
    return True


def _seal(path: Path, index: Any) -> None:
    index.pop("sha256", None)
    path.write_text(json.dumps({**index, "sha256": digest(index)}, indent=1))
