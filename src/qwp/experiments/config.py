"""The definition of experiments: tables of directions, systems and grids of settings, read from TOML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.experiments.data import DEMO, FILES, Data
from qwp.experiments.paper import published
from qwp.methods import METHODS, make_aligner, preset
from qwp.methods.presets import check_method
from qwp.methods.settings import REQUIRED
from qwp.results.schema import Anything, Int, Kind, ListOf, MapOf, Record, Text
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

    @property
    def cells_per_direction(self) -> int:
        """The number of cells of one direction: systems, grid points and seeds."""
        return sum(len(system.seeds or self.seeds) for system in self.systems) * len(list(self.points()))

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

    @property
    def cells(self) -> int | None:
        """The number of cells of all tables, equal ones counted twice; None if it depends on the files of the user."""
        if any(table.directions is None and table.data == FILES for table in self.tables):
            return None
        return sum(
            table.cells_per_direction * len(table.directions or Data.demo().directions()) for table in self.tables
        )


def read_experiment(name: str) -> Experiment:
    """Read a shipped experiment by name, or a TOML file."""
    path = CONFIGS / f"{name}.toml" if name in SHIPPED else Path(name)
    if name not in SHIPPED and path.suffix != ".toml":
        raise InputError(f"experiment {name!r} is not known; expected one of {', '.join(SHIPPED)}, or a .toml file")
    content = read_toml(path, like=_LIKE)
    if "tables" not in content:
        table = _table(path, path.stem, content)
        return Experiment(path.stem, table.title, (table,))
    _check(path, _TABLES, content)
    override = content.get("override", {})
    shipped = {each: read_toml(CONFIGS / f"{each}.toml", like=_LIKE) for each in content["tables"]}
    tables = tuple(_table(path, each, {**own, **override}) for each, own in shipped.items())
    return Experiment(path.stem, content.get("title", path.stem), tables)


def _table(path: Path, name: str, content: Mapping[str, Any]) -> Table:
    content = {key: value for key, value in content.items() if (key, value) != ("directions", FOUND)}
    _check(path, _table_schema(), content)
    changed = {
        "systems": tuple(_system(each) for each in content["systems"]),
        "directions": tuple(content["directions"]) if "directions" in content else None,
        "seeds": tuple(content.get("seeds", (0,))),
        "grid": {key: tuple(values) for key, values in content.get("grid", {}).items()},
        "published": content.get("published") or None,
    }
    table = Table(**{"name": name, "title": name, **content, **changed})
    _check_systems(path, table)
    return table


def _system(content: Mapping[str, Any]) -> System:
    system = System(**{**content, "seeds": tuple(content["seeds"]) if "seeds" in content else None})
    if system.preset is not None:
        preset(system.preset)
        check_method(system.preset, system.method)
    return system


def _check_systems(path: Path, table: Table) -> None:
    """Raise an InputError for systems that cannot run."""
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


# --------------------------------------------------------------------------- the schema of a file

_TABLES = Record(
    {"title": Text(), "tables": ListOf(Text(choices=SHIPPED), least=1), "override": MapOf(Anything())},
    optional=frozenset({"title", "override"}),
)


def _table_schema() -> Record:
    seeds, options = ListOf(Int(), least=1), MapOf(Anything())
    system: dict[str, Kind] = {
        "name": Text(),
        "method": Text(choices=tuple(METHODS)),
        "preset": Text(),
        "options": options,
        "seeds": seeds,
    }
    table: dict[str, Kind] = {
        "title": Text(),
        "measure": Text(choices=MEASURES),
        "retrieval": Text(choices=RETRIEVALS),
        "published": Text(choices=("", *published().tables)),
        "max_vocab": Int(least=1),
        "data": Text(choices=(FILES, DEMO)),
        "directions": ListOf(Text(pattern="[^-]+-[^-]+"), least=1),
        "seeds": seeds,
        "grid": MapOf(ListOf(Anything(), least=1)),
        "options": options,
        "systems": ListOf(Record(system, optional=frozenset(system) - {"name"}), least=1),
    }
    return Record(table, optional=frozenset(table) - {"systems"})


def _check(path: Path, schema: Record, content: Mapping[str, Any]) -> None:
    problem = schema.problem(content, "")
    if problem is not None:
        known = ", ".join(schema.kinds)
        raise InputError(f"{path} is not an experiment: {problem}. Expected a file with the keys {known}")
