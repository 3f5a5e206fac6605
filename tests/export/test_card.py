"""The model card: complete for anybody's model, and right."""

import re
from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")


from treepiece.decoding.types import DecodingConfig, Temperatures
from treepiece.definition import DecoderConfig, Definition, ModelKind
from treepiece.export.card import Card
from treepiece.export.parity import Parity, Quality
from treepiece.training.recipe import OptimizerConfig, Recipe, Schedule, read_recipe

PARITY = Parity(1000, 991, 0.25)
ANSWERED = ((0.0, 1.0, 0.8255), (0.9, 0.625, 0.97))
QUALITY = Quality(17160, 0.8255, 0.8505, 0.029, 0.014, ANSWERED)
DEFINITION = Definition(ModelKind.AR, ("IN:FLY", "SL:CITY"), frozenset({(None, "IN:FLY")}), DecoderConfig())
RECIPE = Recipe(
    kind=ModelKind.AR,
    epochs=3,
    optimizer=OptimizerConfig(learning_rates={"decoder": 1e-5}, schedule=Schedule.EXPONENTIAL),
)
TRAINING = {"recipe": RECIPE.to_json(), "rows": 122597, "validation": {"rows": 2000, "em": 0.812, "epoch": 2}}
CARD = Card(
    DEFINITION,
    TRAINING,
    DecodingConfig(temperatures=Temperatures(1.37, 4.4)),
    512,
    {"int8": PARITY},
    {"int8": QUALITY},
    "my rows, eval",
    "mine, CC0",
    "## Data\n\n{x}",
)


def test_a_card_says_everything():
    text = CARD.to_markdown()
    for words in (
        "# An autoregressive semantic parser",
        "- Data and licence: mine, CC0.",
        "treepiece parse --model FOLDER",
        "Measured on my rows, eval. This is a development set: ",
        "| int8 | 17,160 | 82.55% | 85.05% |",
        "| int8 | 0.029 | 0.014 |",
        "(1.37 for parses, 4.40 for leaves) were fitted on rows held out from the training data",
        "| `min_confidence` (int8) | answered | right |",
        "| 0 | 100.0% | 82.5% |\n| 0.9 | 62.5% | 97.0% |",
        "more than 512 subwords is an error",
        "\n\n## Data\n\n{x}\n\n",
        "Trained on 122,597 rows.",
        "number 2: EM 81.20% on 2,000 other rows.",
        "| int8 | 1,000 | 99.10% | 2.5e-01 |",
        "Intents (1): FLY.",
        "Slots (1): CITY.",
    ):
        assert words in text, words
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "Use",
        "Scores",
        "Confidence",
        "Limits",
        "Data",
        "How it was made",
        "Compared with the trained model in PyTorch",
        "Labels",
    ]


def test_the_recipe_of_a_card_is_the_one_that_was_used(tmp_path):
    (block,) = re.findall(r"```yaml\n(.*?)```", CARD.to_markdown(), flags=re.DOTALL)
    (tmp_path / "recipe.yaml").write_text(block)
    assert read_recipe(tmp_path / "recipe.yaml", {}) == RECIPE


def test_averaged_models_say_so():
    text = replace(CARD, training={**TRAINING, "average": {"models": 3, "first_weight": 0.3}}).to_markdown()
    assert "number 2, averaged over 3 models (the first has weight 0.3): EM 81.20%" in text


def test_a_model_of_several_runs_has_the_recipe_of_each():
    text = replace(CARD, training=TRAINING | {"before": [TRAINING | {"rows": 300}]}).to_markdown()
    assert "Trained in 2 runs" in text
    assert text.index("Trained on 300 rows.") < text.index("Trained on 122,597 rows.")
    assert text.count("```yaml") == 2


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        ("minilm", "all-MiniLM-L6-v2), Apache-2.0, trained further."),
        ("roberta-base", "roberta-base, trained further, under the licence that it came with."),
        ("random:roberta-base", "the architecture roberta-base, from random weights."),
    ],
)
def test_the_encoder_is_named_with_its_licence(encoder, words):
    assert words in replace(CARD, training={"recipe": {"encoder": encoder}}).to_markdown()


def test_what_is_not_known_is_not_made_up():
    text = Card(DEFINITION, {}, DecodingConfig(), 40, {"float": PARITY}, {}).to_markdown()
    for words in (
        "licence: not stated.",
        "Not measured",
        "Calibration was not measured",
        "number of training rows is not known",
        "Encoder: unknown",
    ):
        assert words in text, words
    assert "yaml" not in text
    assert "see below" in replace(CARD, licence="").to_markdown()


def test_only_an_eval_split_is_called_a_development_set():
    for data, is_development in (("topv2 eval", True), ("topv2 test", False), ("rows.tsv", False)):
        assert ("development set" in replace(CARD, data=data).to_markdown()) == is_development


def test_a_card_is_of_no_data_but_those_that_it_is_told():
    assert "topv2" not in CARD.to_markdown().lower()


def test_what_can_be_done_with_graphs_and_what_with_weights():
    parse, train = "treepiece parse", "treepiece train your-rows.tsv"
    for parities, wanted in (
        (("int8",), {parse}),
        (("weights-half",), {train}),
        (("float", "weights-float"), {parse, train}),
    ):
        text = replace(CARD, parities=dict.fromkeys(parities, PARITY)).to_markdown()
        assert {words for words in (parse, train) if f"\n{words}" in text} == wanted


def test_many_labels_are_not_all_written():
    labels = tuple(f"SL:L{number}" for number in range(130))
    text = replace(CARD, definition=replace(DEFINITION, labels=labels)).to_markdown()
    assert "Slots (130): L0, " in text
    assert "L99, and 30 more in `config.json`." in text
    assert "Intents (0): none." in text
