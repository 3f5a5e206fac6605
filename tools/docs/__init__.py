"""Generates the parts of the documentation that come from code: the figures and the command reference.

    python -m tools.docs

writes both into `docs`. Tests compare what is there with what the code generates, so that neither can fall behind.
"""
