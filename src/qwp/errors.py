"""Errors a user can act on. Each message says what was received, what was expected and how to fix it."""

from __future__ import annotations


class QwpError(Exception):
    """Base of everything qwp raises on purpose; the command line turns it into one line and exit code 2."""


class InputError(QwpError, ValueError):
    """A file, an option or an array is not what it has to be."""
