"""Rows and an encoder that are small enough to train on in a test."""

import fcntl
import os
from pathlib import Path

from treepiece.data.rows import Row
from treepiece.data.toy import toy_rows
from treepiece.trees.frame import Frame

SETTINGS = {
    "epochs": 2,
    "batch_size": 16,
    "scope": False,
    "decoder": {"n_heads": 2, "max_length": 64},
    "tokenizer": {"merges": 20},
}
"""A recipe for a very small model, but for its encoder."""


def rows_of(n, seed=0):
    made = enumerate(toy_rows(n, seed), start=1)
    return [
        Row((frame := Frame.from_brackets(parse, utterance)).skeleton, frame, domain, line)
        for line, (domain, utterance, parse) in made
    ]


def write_tiny_encoder(folder):
    """Write a very small encoder in the format of Hugging Face."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    words = sorted({word for row in rows_of(300) for word in row.frame.utterance.lower().replace(",", " ").split()})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ",", "?", "!", "'", *words]
    tokenizer = Tokenizer(
        models.WordPiece({piece: n for n, piece in enumerate(dict.fromkeys(pieces))}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=40,
    )
    BertModel(config).save_pretrained(folder)


def tiny_model(encoder, kind="treepiece", n_rows=200, *, reranker=False, plain=False):
    """Return a very small model with random weights, in which answers differ from text to text.

    A plain one is TreePiece as in the paper, without extensions.
    """
    import torch

    from treepiece import TokenizerConfig, TreePieceTokenizer
    from treepiece.definition import DecoderConfig, Definition, Extensions, ModelKind
    from treepiece.models.encoder import load_encoder
    from treepiece.models.trained import TrainedModel, build_model

    skeletons = [row.skeleton for row in rows_of(n_rows)]
    kind = ModelKind(kind)
    units = TreePieceTokenizer.train(skeletons, TokenizerConfig(merges=20)) if kind is ModelKind.TREEPIECE else None
    config = DecoderConfig(n_heads=2, max_length=64)
    definition = Definition.of_trees(
        kind,
        set(skeletons),
        decoder=config,
        tokenizer=units,
        extensions=None if plain else Extensions(True, True, True, reranker),
    )
    loaded, subwords = load_encoder(str(encoder))
    torch.manual_seed(1)
    model = build_model(definition, loaded).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3)  # weights of the usual size give every text the same answer
    return TrainedModel(definition, model, subwords, {"recipe": {"encoder": "tiny"}, "rows": n_rows})


def export_tiny(folder, trained):
    """Save a model and export it; return the folder of the bundle."""
    from treepiece.data.examples import make_examples
    from treepiece.export.exporter import ExportOptions, export_model
    from treepiece.models.trained import save_model

    save_model(folder / "model", trained)
    examples, _ = make_examples(rows_of(60, seed=1), trained.subwords)
    # Of random weights int8 makes other trees: low-confidence answers are all that they have.
    options = ExportOptions(least_agreement=0.0)
    export_model(folder / "model", folder / "bundle", examples, data="toy rows", options=options)
    return folder / "bundle"


def once(name, tmp_path_factory, make) -> Path:
    """Return what `make` returns for a folder, made by the first of the test processes and shared by all."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = base / name
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            folder.mkdir(exist_ok=True)
            (folder / "made").write_text(str(make(folder)))
        return Path((folder / "made").read_text())
