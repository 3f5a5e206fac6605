"""Checks of data before training: rows that contradict each other, leak into another split, or look mislabelled."""
