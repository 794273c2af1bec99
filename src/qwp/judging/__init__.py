"""Judging a map: the verdict without a dictionary, and scores against one."""
