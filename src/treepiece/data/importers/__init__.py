"""Importers: rows from the training data of other tools, one module for each format."""
