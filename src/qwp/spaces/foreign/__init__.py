"""Readers of files that C and C++ libraries parse, which `qwp.spaces.io.isolated` runs in a child process with limits.

Nothing here imports `qwp.spaces.io`: the child process starts in half the time without it.
"""
