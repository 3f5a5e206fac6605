"""Evaluation of parsers: exact match, confidence intervals, label confusions, paired tests and calibration."""
