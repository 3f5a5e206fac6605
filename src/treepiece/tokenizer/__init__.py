"""The tree tokenizer: merges, the lattice of partitions, EM, placeholders. Needs numpy.

A corpus (`corpus`) gives units by merging (`merges`). A `forest` holds the distinct subtrees of trees, a `matcher` lays
all units on them, and the result is a `lattice`, whose readings are EM (`em`), partitions (`partition`, `nbest`) and
the vocabulary with placeholders (`expansion`, `vocabulary`). `assembly` goes back from units to trees, and `tokenizer`
is what users see of it all.
"""
