"""Spelling correction: what is corrected, to what, and where its subwords are in the text as typed."""

import json
import shutil

import pytest
from brute_force import string_alignment
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny import export_tiny, once, rows_of, tiny_model
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from treepiece import Parser
from treepiece.bundle import DICTIONARY, read_bundle, write_bundle
from treepiece.errors import BundleError
from treepiece.jobs.job import Job
from treepiece.spelling import (
    LETTERS,
    MAX_UNKNOWN,
    MAX_WORDS,
    MIN_COUNT,
    OFTEN,
    TWO_EDITS,
    Dictionary,
    SpellingCorrector,
    TextTokenizer,
    corrected,
    realign,
)
from treepiece.text import SubwordTokenizer
from treepiece.trees.align import Span

WORDS = {
    "alarm": 90,
    "remind": 80,
    "tomorrow": 70,
    "for": 60,
    "alarms": 50,
    "weather": 9,
    "oslo": 3,
    "wether": 2,
}
letters = st.sampled_from("abcdelmnorstw")
words = st.text(letters, min_size=1, max_size=9)


def corrector_of(counts, known=()):
    return SpellingCorrector(Dictionary(counts), set(known).__contains__)


def pieces_tokenizer(pieces):
    """Return a subword tokenizer that knows these pieces, and every letter."""
    vocabulary = [
        "[UNK]",
        "[CLS]",
        "[SEP]",
        *pieces,
        *(f"{mark}{one}" for one in "abcdefghijklmnopqrstuvwxyz" for mark in ("", "##")),
    ]
    tokenizer = Tokenizer(
        models.WordPiece({one: n for n, one in enumerate(dict.fromkeys(vocabulary))}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return SubwordTokenizer(tokenizer.to_str(), max_length=64, n_ids=100_000)


@pytest.fixture(scope="module")
def text_tokenizer():
    return TextTokenizer(pieces_tokenizer(["alarm", "remind", "to", "##mor", "##row", "for"]), Dictionary(WORDS))


@given(word=words, counts=st.dictionaries(words, st.integers(1, 9), max_size=12))
def test_the_nearest_word_is_that_of_the_definition(word, counts):
    most = 2 if len(word) >= TWO_EDITS else 1
    near = [
        (string_alignment(word, other), -count, other)
        for other, count in counts.items()
        if count >= MIN_COUNT and len(other) >= LETTERS[0] - 1 and string_alignment(word, other) <= most
    ]
    counts.pop(word, None)  # what training rows have is another case
    near = [one for one in near if one[2] != word]
    read = corrector_of(counts).nearest(word)
    if not near:
        assert read is None or read.replace(" ", "") == word  # two words
    else:
        assert read is not None
        assert (string_alignment(word, read), -counts[read]) == min(near)[:2]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("set an alrm", "set an alarm"),
        ("Remidn me TOMOROW", "Remind me TOMORROW"),
        ("wheater in olso", "weather in oslo"),
        ("what's the waether, please?", "what's the weather, please?"),
        ("alarmm's", "alarm's"),
        ("to morrow", "tomorrow"),
        ("Tomor row's weather", "Tomorrow's weather"),
        ("alarmfor tomorrow", "alarm for tomorrow"),
        ("al ar m", "al ar m"),
    ],
)
def test_errors_are_corrected(text, read):
    corrections = corrector_of(WORDS).corrections(text)
    assert corrected(text, corrections) == read
    assert [text[one.start : one.end] for one in corrections] == [one.text for one in corrections]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "alarm for tomorrow",
        "ALARM",
        "wether",  # training rows have it
        "malarm",  # the encoder knows it
        "fro",  # too short
        "alarm1",
        "toomoorroww",  # three errors
        "remnid" * 6,  # too long
        "x" * 10_000,
        "提醒我明天早上七点叫醒我",
        "ذكرني أن أتصل",
        "เตือนฉันพรุ่งนี้",
        "İstanbul",  # in lower case it is longer
        " ".join(["alrm"] * (MAX_UNKNOWN + 1)),
        "\ud800 \x00 🎉",
    ],
)
def test_other_text_is_left_alone(text):
    assert corrector_of(WORDS, known=["malarm"]).corrections(text) == ()


def test_a_word_of_a_single_row_is_corrected_to_a_frequent_word_only():
    counts = {"alarm": OFTEN, "severn": 1, "seven": OFTEN - 1, "alrm": 1}
    assert corrector_of(counts).nearest("alrm") == "alarm"
    assert corrector_of(counts).nearest("severn") is None
    assert corrector_of({"seven": OFTEN - 1}).nearest("severn") == "seven"


def test_text_of_known_words_is_never_compared(monkeypatch):
    corrector = corrector_of(WORDS)
    monkeypatch.setattr(corrector, "nearest", None)
    assert corrector.corrections("remind alarms for tomorrow 8") == ()


@given(
    st.lists(st.sampled_from([*WORDS, "alrm", "wheather", "TOMMOROW", "remidn", "at 8", "—", "'s", "x"]), max_size=8)
)
def test_offsets_are_those_of_the_text_as_typed(text_tokenizer, parts):
    text = " ".join(parts)
    (found,) = text_tokenizer.try_batch([text])
    end = 0
    for offset in found.subwords.offsets:
        assert end <= offset.start < offset.end <= len(text)
        end = offset.end
    for one in found.corrections:  # a leaf that is the whole word is all that was typed of it
        inside = found.subwords.covering(Span(one.start, one.end))
        assert found.subwords.chars(inside) == Span(one.start, one.end)
    (plain,) = TextTokenizer(text_tokenizer.subwords).try_batch([text])
    outside = [
        offset
        for offset in plain.subwords.offsets
        if all(offset.end <= one.start or one.end <= offset.start for one in found.corrections)
    ]
    assert set(outside) <= set(found.subwords.offsets)


def test_a_correction_never_empties_a_leaf():
    """Where a subword would have no letter of the text as typed, the text is not corrected."""
    corrections = corrector_of({"tomorrow": 2}).corrections("tmorrow")
    assert realign([Span(0, 1), Span(1, 2), Span(2, 8)], corrections) is None
    tokenizer = TextTokenizer(pieces_tokenizer(["t", "##o", "##morrow"]), Dictionary({"tomorrow": 2}))
    (found,) = tokenizer.try_batch(["tmorrow"])
    assert found.corrections == ()
    assert "".join("tmorrow"[start:end] for start, end in found.subwords.offsets) == "tmorrow"


def test_a_correction_that_makes_a_text_too_long_is_dropped():
    tokenizer = TextTokenizer(pieces_tokenizer(["tomorow"]), Dictionary({"tomorrow": 2}))
    tokenizer.corrector = corrector_of({"tomorrow": 2})  # which does not know that the encoder has a subword for it
    text = "tomorow " * 20
    (found,) = tokenizer.try_batch([text])
    assert found.corrections == ()
    assert len(found.subwords.offsets) == 20


def test_a_dictionary_is_saved_and_loaded():
    dictionary = Dictionary.of_texts(["Wake Ana", "wake me, İzmir", "what's up"])
    assert dictionary.counts["wake"] == 2
    assert Dictionary.from_bytes(dictionary.to_bytes()).counts == dictionary.counts
    both = dictionary | Dictionary({"ana": 4, "mia": 1})
    assert (both.counts["ana"], both.counts["mia"], both.counts["wake"]) == (5, 1, 2)


def test_a_dictionary_keeps_the_most_frequent_words():
    counts = {f"w{number}": 1 for number in range(MAX_WORDS)} | {"often": 2}
    kept = Dictionary(counts).counts
    assert len(kept) == MAX_WORDS
    assert next(iter(kept)) == "often"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "not JSON"),
        (b"[]", "expected words and how often each occurs"),
        (b'{"a": 0}', "'a': expected how often the word occurs, 1 or more, found 0"),
        (b'{"a": "b"}', "'a': expected how often the word occurs, 1 or more, found 'b'"),
        (json.dumps(dict.fromkeys(map(str, range(1_000_000)), 2)).encode(), "1,000,000 words are too many"),
    ],
)
def test_files_that_are_no_dictionary(data, message):
    with pytest.raises(BundleError, match=message):
        Dictionary.from_bytes(data)


@pytest.fixture(scope="module")
def spelling_bundle(tmp_path_factory, tiny_encoder):
    """The tiny bundle with a dictionary."""

    def make(folder):
        trained = tiny_model(tiny_encoder)
        trained.dictionary = Dictionary.of_texts(row.frame.utterance for row in rows_of(300))
        return export_tiny(folder, trained)

    return once("spelling_bundle", tmp_path_factory, make)


def test_a_parser_reads_the_corrected_text_and_quotes_the_typed_one(spelling_bundle):
    parser, plain = Parser(spelling_bundle), Parser(spelling_bundle, spelling=False)
    n_corrected = 0
    for row in rows_of(30, seed=3):
        right = row.frame.utterance
        word = max(right.split(), key=len)
        typed = right.replace(word, word[0] + word[2] + word[1] + word[3:])
        result, wanted = parser(typed), plain(right)
        if [one.read for one in result.corrections] != [word]:
            continue
        n_corrected += 1
        assert result.text == typed
        assert (result.best.frame.skeleton, result.confidence) == (wanted.best.frame.skeleton, wanted.confidence)
        assert [slot.text for slot in result.slots] == [typed[slot.start : slot.end] for slot in wanted.slots]
        assert result.to_dict()["corrections"] == [one._asdict() for one in result.corrections]
        assert plain(typed).corrections == ()
    assert n_corrected > 10


def test_a_text_is_corrected_alone_as_in_a_batch(spelling_bundle):
    parser = Parser(spelling_bundle)
    texts = ["remidn me to call mom", "remind me to call mom", "wake me up tomorow", "tomorow"]
    assert [result.corrections for result in parser.batch(texts)] == [parser(text).corrections for text in texts]
    assert parser.batch(texts) == [parser(text) for text in texts]


@given(text=st.text(max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=50)
def test_any_text_has_a_corrected_form(text_tokenizer, text):
    (found,) = text_tokenizer.try_batch([text])
    for one in found.corrections:
        assert text[one.start : one.end] == one.text != one.read


def test_a_job_is_another_without_spelling(spelling_bundle, tmp_path):
    """So it is not resumed with other corrections than it was begun with."""
    rows = tmp_path / "rows.txt"
    rows.write_text("remidn me to call mom\n")
    job = Job(rows, tmp_path / "out.jsonl")
    plans = [job.plan(Parser(spelling_bundle, spelling=spelling)) for spelling in (True, False)]
    assert [plan.pop("spelling") for plan in plans] == [True, False]
    assert plans[0] == plans[1]


def test_a_bundle_without_a_dictionary(spelling_bundle, tmp_path):
    copy = shutil.copytree(spelling_bundle, tmp_path / "bundle")
    bundle = read_bundle(copy)
    write_bundle(copy, bundle.kind, {name: bundle.read(name) for name in bundle.files if name != DICTIONARY})
    parser = Parser(copy)
    assert not parser.corrects_spelling
    assert parser("remidn me to call mom").corrections == ()


def test_a_bundle_with_a_damaged_dictionary(spelling_bundle, tmp_path):
    copy = shutil.copytree(spelling_bundle, tmp_path / "bundle")
    bundle = read_bundle(copy)
    files = {name: bundle.read(name) for name in bundle.files}
    write_bundle(copy, bundle.kind, {**files, DICTIONARY: b'{"a": -1}'})
    with pytest.raises(
        BundleError, match=r"dictionary\.json: 'a': expected how often the word occurs.*export or train"
    ):
        Parser(copy)
