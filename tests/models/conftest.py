import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")


@pytest.fixture(scope="session")
def subwords():
    """A subword tokenizer of letters and digits: enough for any text, and no file to load."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    from treepiece.text import SubwordTokenizer

    alphabet = "abcdefghijklmnopqrstuvwxyz0123456789,?!'"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *alphabet, *(f"##{letter}" for letter in alphabet), "to", "##ing"]
    tokenizer = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return SubwordTokenizer(tokenizer.to_str(), max_length=96, n_ids=len(words))


@pytest.fixture
def encoder():
    """A very small encoder with random weights."""
    from transformers import BertConfig, BertModel

    from treepiece.models.encoder import Encoder

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=96,
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=96,
    )
    return Encoder(BertModel(config)).eval()
