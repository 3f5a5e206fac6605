"""Labelled ordered trees: nodes, bracket text, JSON, drawings, and frames over an utterance. Standard library only."""
