"""Experiments: tables of many runs, each cell computed once, beside the published figures."""
