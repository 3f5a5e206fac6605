"""A toy grammar that makes rows in the style of TOP: for tests, demos and a first training run.

The requests are invented. Everything is lower case, every word's label follows from the words around it, and no tree
is deeper than six nodes.
"""

from treepiece.data.toy.generate import toy_domains, toy_frames, toy_rows

__all__ = ["toy_domains", "toy_frames", "toy_rows"]
