"""Batch jobs: the rows of a file parsed into another file, on this machine or a Ray cluster, and resumable."""
