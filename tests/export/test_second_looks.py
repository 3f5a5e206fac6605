"""A bundle with a ranker, a judge or both answers as PyTorch does, with and without them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from tiny import export_tiny, rows_of, tiny_model  # noqa: E402

from treepiece.models.trained import load_model  # noqa: E402
from treepiece.runtime.graphs import as_ids  # noqa: E402
from treepiece.runtime.parser import Parser  # noqa: E402

TEXTS = [row.frame.utterance for row in rows_of(40, seed=7)]
SWITCHES = {"ranker": ["ranks"], "judge": ["judges"], "both": ["ranks", "judges"]}


@pytest.fixture(scope="module", params=SWITCHES)
def both(request, tmp_path_factory, tiny_encoder):
    switches = SWITCHES[request.param]
    trained = tiny_model(tiny_encoder, ranked="ranks" in switches, judged="judges" in switches)
    for part in (trained.model.spans.ranker, trained.model.judge):
        if part is not None:
            part.weight.fill_(0.7)
    bundle = export_tiny(tmp_path_factory.mktemp("looks"), trained)
    return load_model(bundle.parent / "model"), Parser.load(bundle, precision="float"), switches


@pytest.mark.parametrize("beam", [1, 3, 7])
@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("sure", [0.3, 1.0])
def test_graphs_give_the_parses_of_pytorch(both, beam, is_on, sure, monkeypatch):
    trained, parser, switches = both
    trained.model.sure.fill_(sure)
    monkeypatch.setattr(parser.model, "sure", sure)
    monkeypatch.setattr(trained.model, switches[-1], is_on)  # with both, the ranker stays
    monkeypatch.setattr(parser.model, switches[-1], is_on)
    for utterance in trained.subwords.encode_batch(TEXTS):
        (wanted,) = trained.model.parse([utterance], beam=beam)
        (found,) = parser.model.parse(as_ids([utterance.ids]), beam=beam)
        assert len(found) == len(wanted) <= beam
        for a, b in zip(wanted, found, strict=True):
            assert (a.skeleton, a.spans, a.unit_ids, a.passes) == (b.skeleton, b.spans, b.unit_ids, b.passes)
            assert a.log_p == pytest.approx(b.log_p, rel=1e-4, abs=1e-3)
            assert np.allclose(a.leaf_log_p, b.leaf_log_p, atol=1e-3)


def test_a_second_look_changes_answers(both, monkeypatch):
    trained, parser, switches = both
    utterances = trained.subwords.encode_batch(TEXTS)
    answers = []
    for is_on in (True, False):
        monkeypatch.setattr(parser.model, switches[-1], is_on)
        answers.append([parser.model.parse(as_ids([one.ids]))[0][0].skeleton for one in utterances])
    assert answers[0] != answers[1]
