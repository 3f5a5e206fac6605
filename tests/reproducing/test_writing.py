"""A judge that is made to write is the autoregressive parser whose opinion it gives."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from tiny import SETTINGS, rows_of  # noqa: E402

from reproduction.writing import make_writer, score_writer  # noqa: E402
from treepiece.models.trained import save_model  # noqa: E402
from treepiece.models.utterances import encode_utterances  # noqa: E402
from treepiece.training.configs import read_config  # noqa: E402
from treepiece.training.observer import Observer  # noqa: E402
from treepiece.training.preparation import new_model  # noqa: E402
from treepiece.training.recipe import Recipe  # noqa: E402


@pytest.fixture
def make(tiny_encoder):
    def made(**changes):
        recipe = read_config(Recipe, {"encoder": str(tiny_encoder), **SETTINGS, **changes})
        trained = new_model(rows_of(80), recipe, Observer(), None)
        trained.model.eval()
        return trained

    return made


def test_what_is_written_is_as_probable_as_the_judge_says(make):
    trained = make(judge_weight=1.0)
    judge = trained.model.judge
    utterances = trained.subwords.encode_batch(["wake me at 8 am", "text mom that i am late", "hello"])
    with torch.no_grad():
        memory = encode_utterances(trained.model.encoder, utterances)
        for item, (parse,) in enumerate(make_writer(trained).parse(utterances)):
            frame = judge.vocabulary.write(parse.skeleton, parse.spans)
            (best,) = judge([frame], memory.select([item])).tolist()
            assert best <= parse.log_p + 1e-4  # the parser's is a share of what the grammar allows, the judge's of all
            assert parse.passes == len(frame)


def test_scores_of_a_model_with_and_without_a_judge(make, tmp_path):
    save_model(tmp_path / "judged", make(judge_weight=1.0))
    scores = score_writer(tmp_path / "judged", rows_of(20))
    assert (scores["rows"], scores["invalid"]) == (20, 0)
    save_model(tmp_path / "plain", make())
    assert score_writer(tmp_path / "plain", rows_of(20)) == {}
    assert make_writer(make(model="ar")) is None
