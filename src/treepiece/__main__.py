"""Runs the command line as `python -m treepiece`."""

from treepiece.cli.main import run

if __name__ == "__main__":
    run()
