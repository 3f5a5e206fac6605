"""One command for the paper's tables and figures: it trains, evaluates and writes `docs/results.md`.

    python -m reproduction --topv2 DIR --work runs/reproduction

Everything is made of parts. A part writes one JSON file when it is done and is not done again while what it was made
from is the same; one that was interrupted goes on where it stopped.
"""
