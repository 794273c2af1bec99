"""Generated parts from the declared parameters: tables of docs/parameters.md, types of keyword arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qwp.cli.parameters import COMMAND_FLAGS
from qwp.methods import METHODS, QWP
from qwp.methods.aligner import Aligner
from qwp.methods.presets import PRESETS, REMARKS, preset
from qwp.parameters import Parameter, components
from qwp.parameters import parameters as parameters_of
from qwp.stages.refinement import CslsRefinement

_WIDTH = 120
_OPTIONS_HEAD = '''"""Types of methods and their parameters, written by `make generated`."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

'''
_OPTIONS_CLASS = '''

class Options(TypedDict, total=False):
    """Parameters of `qwp.align` and similar functions besides method and seed; each method has some of them."""

'''


def table(argument: str) -> str:
    """Return the parameters of a group as a Markdown table.

    argument: `shared` (of all methods), `command`, `refinement`, a method, or `qwp.PANEL` for those of the default
    method in a panel of --help.
    """
    if argument == "refinement":
        return _refinement()
    method, _, panel = argument.partition(".")
    if argument == "shared":
        chosen = list(Aligner.parameters().values())
    elif argument == "command":
        chosen = [flag.parameter for flag in COMMAND_FLAGS.values()]
    else:
        chosen = _own(method)
    if panel:
        chosen = [p for p in chosen if p.declared.panel.split()[0].lower() == panel]
    rows = [(f"`{p.name}`", f"`{p.shown_default}`", p.range, p.declared.help) for p in chosen]
    return _markdown(("parameter", "default", "range", "meaning"), rows)


def presets(_: str) -> str:
    """Return the values of all presets beside the defaults and the remarks on the paper."""
    rows = []
    for name, remark in REMARKS.items():
        default = QWP.parameters()[name].shown_default
        values = [str(preset(each)[name]) for each in PRESETS]  # type: ignore[literal-required]
        shown = values[:1] + [value if value != values[0] else "" for value in values[1:]]
        rows.append((f"`{name}`", f"`{default}`", *(f"`{value}`" if value else "" for value in shown), remark))
    return _markdown(("parameter", "default", *(f"`{each}`" for each in PRESETS), "the paper"), rows)


def _own(method: str) -> list[Parameter]:
    """Return the parameters of a method that are not those of all methods, of the refinement or of qwp."""
    aligner = METHODS[method]
    others = set(Aligner.parameters())
    if _refines(aligner):
        others |= set(parameters_of(CslsRefinement()))
    if aligner is not QWP and _extends_qwp(aligner):
        others |= set(QWP.parameters())
    return [p for name, p in aligner.parameters().items() if name not in others]


def _refines(aligner: type[Aligner]) -> bool:
    """Return whether the pipeline of a method has a CSLS refinement."""
    return any(isinstance(part, CslsRefinement) for part in components(aligner.pipeline))


def _extends_qwp(aligner: type[Aligner]) -> bool:
    """Return whether a method has all parameters of qwp."""
    return set(QWP.parameters()) <= set(aligner.parameters())


def _refinement() -> str:
    """Return the table of the refinement: defaults of qwp, of the other methods, and exceptions."""
    rows = []
    for name, plain in parameters_of(CslsRefinement()).items():
        if name in Aligner.parameters():
            continue
        default, common = QWP.parameters()[name].shown_default, plain.shown_default
        exceptions = [
            f"`{method}`: {aligner.parameters()[name].shown_default}"
            for method, aligner in METHODS.items()
            if _refines(aligner)
            and aligner.parameters()[name].shown_default != (default if _extends_qwp(aligner) else common)
        ]
        meaning = plain.declared.help + (f" ({', '.join(exceptions)})" if exceptions else "")
        rows.append((f"`{name}`", f"`{default}`", f"`{common}`", plain.range, meaning))
    return _markdown(("parameter", "`qwp`, `wp`", "the others", "range", "meaning"), rows)


def _markdown(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def options_module(_: str = "") -> str:
    """Return the text of src/qwp/methods/options.py."""
    found: dict[str, list[Parameter]] = {}
    for aligner in METHODS.values():
        for name, p in aligner.parameters().items():
            if name != "seed":
                found.setdefault(name, []).append(p)
    fields = "".join(_line(f"    {name}: ", same) for name, same in sorted(found.items()))
    return _OPTIONS_HEAD + _literal("Method: TypeAlias = ", METHODS) + _OPTIONS_CLASS + fields


def _line(head: str, same: Sequence[Parameter]) -> str:
    """Return the type of a parameter of some methods: the union of their choices, if all have choices."""
    choices = [p.declared.choices or () for p in same]
    end = " | None" if any(p.optional for p in same) else ""
    if all(choices):
        return _literal(head, dict.fromkeys(name for each in choices for name in each), end)
    return f"{head}{same[0].type.__name__}{end}\n"


def _literal(head: str, names: Iterable[str], end: str = "") -> str:
    """Return a Literal of some names in the layout of ruff."""
    quoted = [f'"{name}"' for name in names]
    line = f"{head}Literal[{', '.join(quoted)}]{end}"
    if len(line) <= _WIDTH:
        return f"{line}\n"
    indent = " " * (len(head) - len(head.lstrip()))
    return f"{head}Literal[\n" + "".join(f"{indent}    {each},\n" for each in quoted) + f"{indent}]{end}\n"
