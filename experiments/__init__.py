"""Everything that measures treepiece and makes the tables and figures of the docs: `python -m experiments --help`."""
