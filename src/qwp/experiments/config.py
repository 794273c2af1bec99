"""The definition of experiments: tables of directions, systems and grids of settings, read from TOML."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from qwp.errors import InputError, one_of
from qwp.experiments.data import DEMO, FILES
from qwp.experiments.paper import published
from qwp.methods import METHODS, make_aligner, preset
from qwp.methods.presets import check_method
from qwp.methods.settings import REQUIRED
from qwp.spaces.io.arguments import read_toml

CONFIGS = Path(__file__).parent / "configs"
SHIPPED = ("table1", "table2", "table3", "table4", "bench", "smoke")
FOUND = "found"
MEASURES = ("P@1", "P@5", "P@10", "MRR", "MAP", "AP")
RETRIEVALS = ("nn", "csls")
_LIKE = 'directions = ["en-es", "es-en"]'
# Parameters of execution, and the seed, which has its own key.
_NOT_OPTIONS = ("device", "backend", "threads", "max_memory", "seed")


@dataclass(frozen=True)
class System:
    """A row: a method with its own preset and options. seeds: replace those of the table."""

    name: str
    method: str = "qwp"
    preset: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] | None = None

    @property
    def supervised(self) -> bool:
        """Whether the method needs a dictionary."""
        return METHODS[self.method].supervision == REQUIRED


@dataclass(frozen=True)
class Table:
    """Every system on every direction with every combination of the grid and every seed.

    Attributes:
        directions: None for all directions whose files are found.
        grid: values by parameter.
        options: options of all systems.
        published: the table of the paper to compare with.
        data: `files` of the user or the `demo` of the package.
    """

    name: str
    title: str
    systems: tuple[System, ...]
    measure: str = "P@1"
    retrieval: str = "csls"
    directions: tuple[str, ...] | None = None
    seeds: tuple[int, ...] = (0,)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    published: str | None = None
    max_vocab: int | None = None
    data: str = FILES

    def points(self) -> Iterator[dict[str, Any]]:
        """Yield the combinations of the grid; without a grid, one empty combination."""
        for values in product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))

    def options_of(self, system: System, point: Mapping[str, Any]) -> dict[str, Any]:
        """Merge the options of a cell: preset, table, system, grid; later ones win."""
        first = {} if system.preset is None else dict(preset(system.preset))
        return {**first, **self.options, **system.options, **point}


@dataclass(frozen=True)
class Experiment:
    """A named list of tables."""

    name: str
    title: str
    tables: tuple[Table, ...]

    @property
    def needs_files(self) -> bool:
        """Whether it needs vectors that are not in the package."""
        return any(table.data == FILES for table in self.tables)


def read_experiment(name: str) -> Experiment:
    """Read a shipped experiment by name, or a TOML file."""
    path = CONFIGS / f"{name}.toml" if name in SHIPPED else Path(name)
    if name not in SHIPPED and path.suffix != ".toml":
        raise InputError(f"experiment {name!r} is not known; expected one of {', '.join(SHIPPED)}, or a .toml file")
    content = read_toml(path, like=_LIKE)
    if "tables" not in content:
        table = _table(path, path.stem, content)
        return Experiment(path.stem, table.title, (table,))
    _check_keys(path, content, ("title", "tables", "override"))
    tables = []
    for each in _strings(path, "tables", content["tables"]):
        one_of(SHIPPED, tables=each)
        own = read_toml(CONFIGS / f"{each}.toml", like=_LIKE)
        tables.append(_table(path, each, {**own, **content.get("override", {})}))
    return Experiment(path.stem, content.get("title", path.stem), tuple(tables))


def _table(path: Path, name: str, content: Mapping[str, Any]) -> Table:
    keys = ("title", "measure", "retrieval", "published", "max_vocab", "data", "directions", "seeds", "grid", "options")
    _check_keys(path, content, (*keys, "systems"))
    plain = {key: content[key] for key in ("measure", "retrieval", "max_vocab", "data") if key in content}
    table = Table(
        name,
        content.get("title", name),
        tuple(_system(path, each) for each in content.get("systems", ())),
        directions=_directions(path, content.get("directions", FOUND)),
        seeds=_seeds(path, content.get("seeds", [0])),
        grid={key: tuple(_list(path, f"grid.{key}", values)) for key, values in content.get("grid", {}).items()},
        options=content.get("options", {}),
        published=content.get("published") or None,
        **plain,
    )
    _check(path, table)
    return table


def _check(path: Path, table: Table) -> None:
    """Raise an InputError for a table that cannot run."""
    one_of(MEASURES, measure=table.measure)
    one_of(RETRIEVALS, retrieval=table.retrieval)
    one_of((FILES, DEMO), data=table.data)
    if table.published is not None:
        one_of(published().tables, published=table.published)
    if not table.systems:
        raise InputError(f"{path} has no systems; expected at least one [[systems]] with a name")
    names = [system.name for system in table.systems]
    if len(set(names)) < len(names):
        raise InputError(f"{path} names two systems alike ({', '.join(names)}); expected different names")
    for system in table.systems:
        for point in table.points():
            options = table.options_of(system, point)
            unknown = [name for name in options if name in _NOT_OPTIONS]
            if unknown:
                raise InputError(f"{path} sets {', '.join(unknown)} for {system.name!r}: leave it out of the options")
            make_aligner(system.method, **options).check()


def _system(path: Path, content: Mapping[str, Any]) -> System:
    _check_keys(path, content, ("name", "method", "preset", "options", "seeds"))
    if "name" not in content:
        raise InputError(f"{path} has a system without a name; expected name = ... in every [[systems]]")
    seeds = _seeds(path, content["seeds"]) if "seeds" in content else None
    system = System(**{**content, "seeds": seeds})
    one_of(METHODS, method=system.method)
    if system.preset is not None:
        preset(system.preset)
        check_method(system.preset, system.method)
    return system


def _check_keys(path: Path, content: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = [key for key in content if key not in known]
    if unknown:
        raise InputError(f"{path} sets {', '.join(unknown)}, which is not known; expected some of {', '.join(known)}")


def _directions(path: Path, value: Any) -> tuple[str, ...] | None:
    if value == FOUND:
        return None
    for direction in _strings(path, "directions", value):
        if len([lang for lang in direction.split("-") if lang]) != 2 or direction.count("-") != 1:
            raise InputError(f"{path} has the direction {direction!r}; expected two languages such as en-es")
    return tuple(value)


def _seeds(path: Path, value: Any) -> tuple[int, ...]:
    seeds = _list(path, "seeds", value)
    if not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise InputError(f"{path} sets seeds = {reprlib.repr(value)}; expected whole numbers from 0, as in [0, 1, 2]")
    return tuple(seeds)


def _strings(path: Path, key: str, value: Any) -> list[str]:
    texts = _list(path, key, value)
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"{path} sets {key} = {reprlib.repr(value)}; expected a list of texts")
    return texts


def _list(path: Path, key: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise InputError(f"{path} sets {key} = {reprlib.repr(value)}; expected a list of at least one value")
    return value
