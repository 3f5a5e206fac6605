"""Labelled ordered trees, their bracket text, and frames over an utterance. Standard library only."""
