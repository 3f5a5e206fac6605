"""An encoder like the paper's: RoBERTa with its own byte-level subwords."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny import rows_of

from treepiece.data.examples import make_examples, outcome_of
from treepiece.decoding.types import Hypothesis
from treepiece.models.encoder import load_encoder
from treepiece.models.trained import TrainedModel, load_model, save_model
from treepiece.progress import NoProgress
from treepiece.training.preparation import new_model
from treepiece.training.recipe import make_recipe


@pytest.fixture(scope="module")
def roberta(tmp_path_factory):
    """A very small RoBERTa in the format of Hugging Face, with a byte-level tokenizer trained on the toy grammar."""
    from tokenizers import ByteLevelBPETokenizer
    from tokenizers.processors import RobertaProcessing
    from transformers import RobertaConfig, RobertaModel

    folder = tmp_path_factory.mktemp("roberta")
    tokenizer = ByteLevelBPETokenizer()
    utterances = [row.frame.utterance for row in rows_of(200)]
    tokenizer.train_from_iterator(utterances, vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer._tokenizer.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=400,
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=130,
    )
    RobertaModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def trained(roberta):
    recipe = make_recipe(
        {"encoder": str(roberta), "decoder": {"n_heads": 2, "max_length": 64}, "tokenizer": {"merges": 20}},
    )
    made = new_model(rows_of(200), recipe, NoProgress(), None)
    made.model.eval()
    return made


def test_leaves_begin_and_end_with_subwords(roberta):
    encoder, subwords = load_encoder(str(roberta))
    assert encoder.max_length == subwords.max_length == 128
    examples, left_out = make_examples(rows_of(200), subwords)
    assert left_out == []
    for example in examples:
        parse = Hypothesis.of_parts(example.frame.skeleton, example.spans, 0.0, (0.0,) * len(example.spans), passes=1)
        assert outcome_of(example, parse).is_exact, example.frame.utterance


@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.sampled_from(["👩‍👩‍👧", "wäke mé", "8\u3000am"])
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_text_gets_a_frame_of_its_own_characters(trained, text):
    (frame,) = trained.parse([text])
    assert frame.utterance == text
    assert all(leaf.text == text[leaf.chars.start : leaf.chars.end] for leaf in frame.leaves)


def test_it_is_saved_and_loaded(trained: TrainedModel, tmp_path):
    save_model(tmp_path / "model", trained)
    texts = [row.frame.utterance for row in rows_of(20, seed=4)]
    assert load_model(tmp_path / "model").parse(texts) == trained.parse(texts)
