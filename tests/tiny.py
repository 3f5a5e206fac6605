"""Rows and an encoder that are small enough to train on in a test."""

from treepiece.data.rows import Row
from treepiece.data.toy import toy_rows
from treepiece.trees.frame import Frame

SETTINGS = {"epochs": 2, "batch": 16, "decoder": {"n_heads": 2, "longest": 64}, "tokenizer": {"merges": 20}}
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
