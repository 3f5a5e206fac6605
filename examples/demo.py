"""Trains a tokenizer on the toy grammar and draws a few trees cut into units."""

import sys
from itertools import islice

from treepiece import TokenizerConfig, TreePieceTokenizer
from treepiece.data.toy import toy_frames

frames = list(toy_frames(5000, seed=0))
tokenizer = TreePieceTokenizer.train((frame.skeleton for frame in frames), TokenizerConfig(merges=150))
unit_ids = tokenizer.encode_batch(frame.skeleton for frame in frames)
units_per_tree = sum(map(len, unit_ids)) / len(frames)
nodes_per_tree = sum(frame.skeleton.n_nodes for frame in frames) / len(frames)
print(f"{len(frames):,} toy utterances: {nodes_per_tree:.2f} nodes a tree, {units_per_tree:.2f} units a tree")
print(f"{len(tokenizer.units)} units learned; the number beside a node tells which unit wrote it\n")
several = (frame for frame, ids in zip(frames, unit_ids, strict=True) if len(ids) > 1)
for frame in islice(several, 3):
    print(frame.utterance)
    print(tokenizer.draw(frame.tree, colour=sys.stdout.isatty()), end="\n\n")
