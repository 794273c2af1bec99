"""Judging a map: the verdict and the estimated accuracy without a dictionary, and evaluation with one."""
