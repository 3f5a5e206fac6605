"""Checks that a release works: what is built, from where it is installed, with which Pythons and versions."""
