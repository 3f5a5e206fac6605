"""What the documentation shows that is made by code: the figures, and the page on the command line.

    python -m documentation

writes both into `docs`. Tests compare what is there with what the code makes now, so that neither can fall behind.
"""
