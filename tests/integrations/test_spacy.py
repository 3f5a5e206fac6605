"""The spaCy component, in a blank pipeline."""

import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'treepiece[spacy]'")

import spacy
from spacy.tokens import Doc, DocBin

from treepiece import Parser
from treepiece.data.toy import toy_rows
from treepiece.errors import BundleError, OptionError
from treepiece.extras import install_command

TEXTS = [
    "set an alrm for 6 am and play some jazz",
    "remind me to text grace tonight",
    "",
    " \n ",
    "wake me at 8am!",
    "play  some\tjazz",
    "x " * 3000,
    "👋🏽 e\u0301te\u0301",
]
READABLE = [text for text in TEXTS if text.strip() and len(text) < 1000]


@pytest.fixture(scope="module")
def parser():
    return Parser.bundled(threads=1)


@pytest.fixture(scope="module")
def nlp():
    return pipeline(threads=1)


def pipeline(**config):
    nlp = spacy.blank("en")
    nlp.add_pipe("treepiece", config=config)
    return nlp


def attributes(doc):
    """All that the component sets on a doc."""
    spans = [(span.label_, span.start_char, span.end_char) for span in doc.spans["treepiece"]]
    return doc.text, doc._.frame, doc._.parse, doc._.parse_error, spans


@pytest.mark.slow
def test_spacy_finds_it_without_an_import():
    code = "import spacy; nlp = spacy.blank('en'); nlp.add_pipe('treepiece'); print(nlp('call mom')._.frame.words)"
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (result.stdout, result.returncode) == ("('call', 'mom')\n", 0), result.stderr


@pytest.mark.parametrize("text", READABLE)
def test_it_agrees_with_the_parser(nlp, parser, text):
    doc, result = nlp(text), parser(text)
    assert doc._.parse == result
    assert doc._.frame == result.frame
    assert doc._.parse_error is None
    spans = doc.spans["treepiece"]
    assert [span.label_ for span in spans] == [leaf.label for leaf in result.best.leaves]
    for span, leaf in zip(spans, result.best.leaves, strict=True):
        assert span.start_char <= leaf.chars.start < leaf.chars.end <= span.end_char


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "the text is empty"), (" \n ", "has no readable characters"), ("x " * 3000, "is too long")],
)
def test_what_cannot_be_read_has_no_frame(nlp, text, reason):
    for doc in (nlp(text), *nlp.pipe([text])):
        assert (doc._.frame, doc._.parse, list(doc.spans["treepiece"])) == (None, None, [])
        assert reason in doc._.parse_error


def test_a_doc_that_was_not_parsed_has_no_frame(nlp):
    doc = nlp.make_doc("call mom")
    assert (doc._.frame, doc._.parse, doc._.parse_error) == (None, None, None)


@given(text=st.text(max_size=40) | st.sampled_from(TEXTS))
def test_any_text(nlp, text):
    text = text.encode("utf-8", "ignore").decode()  # spaCy itself takes no half characters
    doc = nlp(text)
    assert doc.text == text
    assert (doc._.parse is None) == (doc._.parse_error is not None)


@pytest.mark.parametrize("batch_size", [1, 3, 1000])
def test_a_text_has_the_same_result_alone_and_in_a_batch(nlp, batch_size):
    texts = TEXTS + [utterance for _, utterance, _ in toy_rows(20)]
    assert list(map(attributes, nlp.pipe(texts, batch_size=batch_size))) == [attributes(nlp(text)) for text in texts]


def test_contexts_stay_with_their_texts(nlp):
    docs = list(nlp.pipe([(text, place) for place, text in enumerate(TEXTS)], as_tuples=True))
    assert [(doc.text, place) for doc, place in docs] == [(text, place) for place, text in enumerate(TEXTS)]


SEVERAL = """
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("treepiece", config={"threads": 2})
texts = ["remind me to text grace tonight", "", "wake me at 8 am", "call mom"]
alone = [doc._.parse and doc._.parse.tree for doc in nlp.pipe(texts)]  # now it has threads, and a fork has not
assert [doc._.parse and doc._.parse.tree for doc in nlp.pipe(texts, n_process=2, batch_size=2)] == alone
"""


@pytest.mark.slow
@pytest.mark.slow
def test_several_processes():
    """In a process of its own: spaCy forks, and what the tests have started does not survive that."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", SEVERAL], check=True, timeout=600)


def test_it_can_be_pickled(nlp):
    assert attributes(pickle.loads(pickle.dumps(nlp))("call mom")) == attributes(nlp("call mom"))


def test_docs_keep_their_results(nlp):
    for text in TEXTS:
        doc = nlp(text)
        assert attributes(Doc(nlp.vocab).from_bytes(doc.to_bytes())) == attributes(doc)
        (copy,) = DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab)
        assert attributes(copy) == attributes(doc)


def test_a_pipeline_is_saved_with_its_configuration(tmp_path):
    nlp = pipeline(threads=1, min_confidence=0.999, nbest=2, spans_key="leaves")
    nlp.to_disk(tmp_path / "pipeline")
    assert not (tmp_path / "pipeline" / "treepiece").exists()
    loaded = spacy.load(tmp_path / "pipeline")
    assert loaded.get_pipe("treepiece").config == nlp.get_pipe("treepiece").config
    doc = loaded("asdf qwer")
    assert (doc._.frame, doc._.parse.understood, len(doc._.parse.candidates)) == (None, False, 2)
    assert list(doc.spans["leaves"]) == []
    loaded.from_bytes(nlp.to_bytes())
    assert loaded("asdf qwer")._.parse == doc._.parse


def test_nbest(parser):
    doc = pipeline(nbest=3, threads=1)(READABLE[0])
    assert doc._.parse == parser(READABLE[0], nbest=3)


def test_spacy_knows_what_it_sets(nlp):
    assert "doc._.frame" in nlp.analyze_pipes()["summary"]["treepiece"]["assigns"]


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"model": "nowhere"}, BundleError, "nowhere: no such folder"),
        ({"precision": "int4"}, OptionError, "precision must be one of float, int8, got 'int4'"),
        ({"precision": "float"}, BundleError, "no graphs in float"),
        ({"threads": 0}, OptionError, "threads must be a whole number"),
        ({"nbest": 0}, OptionError, "nbest must be a whole number"),
        ({"min_confidence": 1.5}, OptionError, "min_confidence must be a number from 0 to 1"),
        ({"min_confidense": 0.5}, ValueError, "min_confidense"),
        ({"nbest": "many"}, ValueError, "nbest"),
        ({"spans_key": ""}, OptionError, "spans_key must be a name"),
    ],
)
def test_a_wrong_configuration_is_told_when_the_component_is_added(config, error, message):
    with pytest.raises(error, match=message):
        pipeline(**config)


@pytest.mark.slow
def test_an_extension_of_somebody_else_is_left_alone():
    code = (
        "import spacy; from spacy.tokens import Doc; Doc.set_extension('frame', default=1)\n"
        "try: spacy.blank('en').add_pipe('treepiece')\n"
        "except ValueError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("doc._.frame is taken by another extension")


def test_without_spacy():
    code = "import sys; sys.modules['spacy'] = None; import treepiece.integrations.spacy"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: the spaCy component needs spacy, which is not installed: {install_command('spacy')}"
    )
