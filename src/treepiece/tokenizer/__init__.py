"""The tree tokenizer. `tokenizer.TreePieceTokenizer` is its interface; numpy is its only dependency.

Training (`learning`) takes a deduplicated `corpus`, merges frequent pairs into units (`merges`), fits their
probabilities (`em`), and adds placeholder patterns; the result is a `vocabulary`. A `matcher` finds all
units in a tree and gives a `lattice` of all partitions, from which `partitions` reads the best ones and samples.
`assembly` turns units back into trees. `shape` and `folding` define the representation; `storage` saves and loads;
`coverage` evaluates.
"""
