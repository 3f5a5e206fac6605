"""Evaluation: exact match with intervals, groups and confusions, tests between two runs, and a file of the misses."""
