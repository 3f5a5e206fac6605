import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece.data.rows import Row  # noqa: E402
from treepiece.data.toy import toy_rows  # noqa: E402
from treepiece.training.configs import read_config  # noqa: E402
from treepiece.training.recipe import Recipe  # noqa: E402
from treepiece.trees.frame import Frame  # noqa: E402


def rows_of(n, seed=0):
    made = enumerate(toy_rows(n, seed), start=1)
    return [
        Row((frame := Frame.from_brackets(parse, utterance)).skeleton, frame, domain, line)
        for line, (domain, utterance, parse) in made
    ]


@pytest.fixture(scope="session")
def toy():
    return rows_of


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory):
    """A folder with a very small encoder in the format of Hugging Face."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("encoder")
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
    return folder


@pytest.fixture
def recipe(tiny_encoder):
    """Return a recipe for a very small model, with some settings changed."""

    def make(**changes):
        settings = {
            "encoder": str(tiny_encoder),
            "epochs": 2,
            "batch": 16,
            "decoder": {"n_heads": 2, "longest": 64},
            "tokenizer": {"merges": 20},
        }
        return read_config(Recipe, {**settings, **changes})

    return make
