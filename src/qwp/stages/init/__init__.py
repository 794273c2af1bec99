"""Initializers: frozen dataclasses with `initial_map(problem, view, report)`, and `BestOf`, which tries several."""
