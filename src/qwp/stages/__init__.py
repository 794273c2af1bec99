"""The stages of a method: initialize, solve, refine. Each is `(problem, state, monitor) -> state`."""
