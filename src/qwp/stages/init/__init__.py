"""Initial maps: one file for each kind of initializer, `Choice` among them by name, and `BestOf`, which tries several.

Each initializer is a frozen dataclass with `initial_map(problem, view, report)`.
"""
