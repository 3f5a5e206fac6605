"""The encoder alone, as the latency experiment times it beside a full parse: text to encoder states.

A bundle has no graph of its own for the encoder: the graph that every parse begins with holds it, and goes on. It is
cut off there, so that what is timed has the operations, weights and precision of the parse that it is compared with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
import onnx
import torch
from onnx import GraphProto, ModelProto, ValueInfoProto, helper

from experiments.timing import Run
from treepiece.errors import BundleError
from treepiece.models.trained import TrainedModel
from treepiece.runtime.parser import Parser, tokenize
from treepiece.runtime.sessions import ENCODE, PARSE, Array, as_ids, graph_file, open_session
from treepiece.spelling import TokenizedText

IDS = "ids"
_LAST = "LayerNormalization"
"""What BERT and its kin end with."""


def runtime_encoder(parser: Parser, texts: Sequence[str]) -> Run:
    """Return how to run the encoder of a parser on ONNX Runtime."""
    file = graph_file(parser.precision, PARSE if PARSE in parser.model.graphs else ENCODE)
    try:
        model = cut_encoder(onnx.load_from_string(parser.bundle.read(file)))
    except LookupError as error:
        raise BundleError(f"{parser.bundle.folder / file}: {error}") from None
    session = open_session(model.SerializeToString(), threads=parser.threads)
    others = {one.name: _any_value(one) for one in model.graph.input if one.name != IDS}

    def encode(item: int) -> object:
        (found,) = tokenize(parser.text_tokenizer, [texts[item]])
        return session.run(None, {IDS: as_ids([cast(TokenizedText, found).subwords.ids]), **others})

    return encode


def torch_encoder(trained: TrainedModel, texts: Sequence[str]) -> Run:
    """Return how to run the encoder of a model in eager PyTorch."""

    @torch.no_grad()
    def encode(item: int) -> object:
        (read,) = trained.subwords.encode_batch([texts[item]])
        ids = torch.tensor([read.ids])
        return trained.model.encoder(ids, torch.ones_like(ids, dtype=torch.bool))

    return encode


def cut_encoder(model: ModelProto) -> ModelProto:
    """Return the part of a graph that computes the encoder's states, its only output; the given one is not changed."""
    graph = model.graph
    states = _states(graph)
    wanted, nodes = {states}, []
    for node in reversed(graph.node):  # what is read stands before its readers
        if wanted & set(node.output):
            nodes.append(node)
            wanted |= _names(node.input)
    result = ModelProto()
    result.CopyFrom(model)
    part = helper.make_graph(
        nodes[::-1],
        "encoder",
        [one for one in graph.input if one.name in wanted],
        [helper.make_empty_tensor_value_info(states)],
        [one for one in graph.initializer if one.name in wanted],
    )
    result.graph.CopyFrom(part)
    return result


def _states(graph: GraphProto) -> str:
    """Return the name of the encoder's states: the last that all knowledge of the utterance passes through.

    Every layer of an encoder ends with such a place. After the encoder there is none: several parts read its states, or
    what is made of them. Names do not tell, because equal weights of encoder and decoder have become one.
    """
    nodes = [node for node in graph.node if node.op_type != "Shape"]  # of which no knowledge comes
    unread = Counter(name for node in nodes for name in node.input) + Counter(one.name for one in graph.output)
    known, found = {IDS}, ""
    for node in nodes:
        if known & set(node.input):
            known |= _names(node.output)
        unread.subtract(node.input)
        known = {name for name in known if unread[name]}
        if node.op_type == _LAST and known == {node.output[0]}:
            found = node.output[0]
    if not found:
        raise LookupError(f"the graph has no encoder that ends with a {_LAST}, so that it cannot be timed on its own")
    return found


def _names(names: Iterable[str]) -> set[str]:
    """Return the names without the empty one, which stands where an input or output is left out."""
    return set(names) - {""}


def _any_value(one: ValueInfoProto) -> Array:
    """Return something for an input of which the encoder reads no more than how many utterances there are."""
    _, *sizes = (size.dim_value for size in one.type.tensor_type.shape.dim)
    return np.ones((1, *sizes), helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type))
