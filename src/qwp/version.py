"""The version, in one place: the build, the citation file and the change log follow it."""

__version__ = "0.2.0.dev0"
