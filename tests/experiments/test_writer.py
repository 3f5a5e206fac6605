"""A reranker that is made to write is the autoregressive parser whose opinion it gives."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from tiny import SETTINGS, rows_of

from experiments.scoring import as_writer, score_writer
from treepiece.models.encoder import encode_utterances
from treepiece.models.trained import save_model
from treepiece.progress import NoProgress
from treepiece.training.preparation import new_model
from treepiece.training.recipe import make_recipe


@pytest.fixture
def make(tiny_encoder):
    def made(**changes):
        recipe = make_recipe({"encoder": str(tiny_encoder), **SETTINGS, **changes})
        trained = new_model(rows_of(80), recipe, NoProgress(), None)
        trained.model.eval()
        return trained

    return made


def test_what_is_written_is_as_probable_as_the_reranker_says(make):
    trained = make(reranker_loss_weight=1.0)
    reranker = trained.model.reranker
    utterances = trained.subwords.encode_batch(["wake me at 8 am", "text mom that i am late", "hello"])
    with torch.no_grad():
        encoded = encode_utterances(trained.model.encoder, utterances)
        for item, (parse,) in enumerate(as_writer(trained).parse(utterances)):
            frame = reranker.vocabulary.write(parse.skeleton, parse.spans)
            (best,) = reranker(torch.tensor([frame]), encoded.select([item])).tolist()
            assert (
                best <= parse.log_p + 1e-4
            )  # the parser's is a share of what the grammar allows, the reranker's of all
            assert parse.passes == len(frame)


def test_scores_of_a_model_with_and_without_a_reranker(make, tmp_path):
    save_model(tmp_path / "reranker", make(reranker_loss_weight=1.0))
    scores = score_writer(tmp_path / "reranker", rows_of(20))
    assert (scores["rows"], scores["invalid"]) == (20, 0)
    save_model(tmp_path / "plain", make())
    assert score_writer(tmp_path / "plain", rows_of(20)) == {}
    assert as_writer(make(kind="ar", tokenizer={})) is None
