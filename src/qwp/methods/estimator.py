"""The manners of scikit-learn: constructors only store, parameters are known by name."""

from __future__ import annotations

from typing import Any, TypeVar

from qwp.errors import InputError
from qwp.parameters import Settings

E = TypeVar("E", bound="Estimator")


class Estimator(Settings):
    """An object that is made of its parameters, and equal to itself alone."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @classmethod
    def parameter_names(cls) -> list[str]:
        """The names of the constructor's parameters: the method's own first, those that all share last."""
        return list(cls.parameters())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters. `deep` is accepted for scikit-learn; nothing is nested."""
        return {name: getattr(self, name) for name in self.parameters()}

    def set_params(self: E, **params: Any) -> E:
        """Change parameters by name."""
        names = self.parameter_names()
        for name, value in params.items():
            if name not in names:
                raise InputError(
                    f"{name!r} is not a parameter of {type(self).__name__}; expected one of {', '.join(names)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {name: parameter.default for name, parameter in self.parameters().items()}
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if v != defaults[k]]
        return f"{type(self).__name__}({', '.join(changed)})"
