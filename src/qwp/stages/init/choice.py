"""Choose one of several initializers by name, as the parameter `start` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from qwp.errors import InputError
from qwp.parameters import START, Declaration, param
from qwp.stages.stage import Stage


@dataclass(frozen=True, kw_only=True)
class Choice(Stage):
    """Run the initializer that `start` names. help: describes the alternatives to the user."""

    name = "start"

    start: str = param("", "The initializer.", START)
    among: Mapping[str, Stage]
    help: str

    def declaration(self, name: str, declared: Declaration) -> Declaration:
        """The choices of `start` are the alternatives."""
        return replace(declared, help=self.help, choices=tuple(self.among)) if name == "start" else declared

    @property
    def chosen(self) -> Stage:
        """The initializer that was chosen."""
        return self.among[self.start]

    def check_supervision(self, lexicon: bool, matrix: bool) -> None:
        """Refuse a lexicon or a matrix without the initializer that uses it, and the initializer without it."""
        self.chosen.check_supervision(lexicon, matrix)
        for name, argument, given in (("lexicon", "lexicon", lexicon), ("matrix", "start_matrix", matrix)):
            if given and self.start != name:
                raise InputError(f"{argument} was given but start={self.start!r} does not use it: set start={name!r}")
