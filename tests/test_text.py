import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from treepiece.errors import TextError
from treepiece.text import SubwordTokenizer
from treepiece.trees.align import Span, covering


@pytest.fixture(scope="module")
def subwords():
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return SubwordTokenizer(tokenizer.to_str(), max_length=32, n_ids=100_000)


@given(text=st.text(max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_offsets_lead_back_to_the_text(subwords, text):
    (utterance,) = subwords.encode_batch([text])
    assert len(utterance.ids) == len(utterance.offsets) + 2
    for place, offset in enumerate(utterance.offsets):
        assert 0 <= offset.start < offset.end <= len(text)
        assert utterance.covering(offset) == Span(place, place + 1)
    n = len(utterance.offsets)
    for span in (Span(start, end) for start in range(n) for end in range(start + 1, n + 1)):
        assert utterance.covering(utterance.chars(span)) == span
    for place in range(n + 1):
        assert utterance.chars(Span(place, place)).start == utterance.chars(Span(place, place)).end


def test_ranges_that_overlap_nothing():
    assert covering([Span(0, 2), Span(3, 5)], Span(2, 3)) == Span(1, 1)
    assert covering([Span(0, 2), Span(3, 5)], Span(4, 4)) == Span(1, 1)
    assert covering([], Span(0, 3)) == Span(0, 0)


def test_an_utterance_that_is_too_long(subwords):
    with pytest.raises(TextError, match="an utterance of 42 subwords is too long: the encoder takes 32"):
        subwords.encode_batch(["a " * 40])


def test_text_that_is_no_tokenizer():
    with pytest.raises(TextError, match="the subword tokenizer cannot be read"):
        SubwordTokenizer("{}", max_length=9, n_ids=9)


def test_a_tokenizer_without_special_tokens_is_refused():
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    with pytest.raises(TextError, match="one special token before an utterance and one after it"):
        SubwordTokenizer(tokenizer.to_str(), max_length=32, n_ids=100_000)


def test_a_tokenizer_of_another_encoder_is_refused(subwords):
    with pytest.raises(TextError, match=r"has the id \d+, but the encoder knows 2 subwords"):
        SubwordTokenizer(subwords.text, max_length=32, n_ids=2)
