"""Scripts for those who work on qwp, not part of the package; run from the checkout as `python -m tools.NAME`."""
