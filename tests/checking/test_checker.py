"""What a check finds: one small data set for each kind, and the counts against their definitions."""

import weakref
from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import rows_of

from treepiece.checking.checker import CheckConfig, ModelParse, check_rows
from treepiece.checking.findings import FindingKind, Severity
from treepiece.checking.signatures import normal_words, parse_signature
from treepiece.data.rows import Row
from treepiece.errors import DataError, OptionError
from treepiece.trees.frame import Frame

EXACT = CheckConfig(min_rows=1)  # no label is rare


def pairs(*parses):
    """Return rows whose utterances are the words of their parses."""
    return [(" ".join(Frame.from_brackets(parse).words), parse) for parse in parses]


def counts(data, eval_data=None, config=EXACT, **options):
    found = check_rows(data, eval_data, config=config, **options).counts
    return {kind: count for kind, count in found.items() if count}


def first(kind, data, eval_data=None, config=EXACT, **options):
    report = check_rows(data, eval_data, config=config, **options)
    assert report.counts[kind] == 1
    (finding,) = report.examples[kind]
    return finding


GOOD = pairs("[IN:WAKE wake me [SL:TIME at 8 ] ]", "[IN:RAIN will it rain [SL:TIME at noon ] ]")


def test_good_rows_have_no_findings():
    report = check_rows(GOOD, config=EXACT)
    assert (report.rows, report.eval_rows, set(report.counts.values()), report.notes) == (2, None, {0}, ())
    assert not report.has_errors


def test_a_row_that_cannot_be_read(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("wake me\t[IN:WAKE wake me ]\nwake me\t[IN:WAKE wake\n")
    report = check_rows(path, config=EXACT)
    (finding,) = report.examples[FindingKind.UNREADABLE]
    assert str(finding.where) == f"{path}, line 2"
    assert "still open" in finding.found
    assert (report.has_errors, finding.severity, report.rows) == (True, Severity.ERROR, 1)


def test_an_utterance_with_several_parses(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text(
        "wake me at 8\t[IN:WAKE wake me [SL:TIME at 8 ] ]\nWake me, at 8!\t[IN:WAKE Wake me , at [SL:TIME 8 ] ! ]\n"
    )
    finding = first(FindingKind.CONFLICT, path)
    assert str(finding.where) == f"{path}, line 2"
    assert finding.found == f"the utterance has another parse than in {path}, line 1"
    assert [quote.tree for quote in finding.parses] == ["[IN:WAKE [SL:TIME 8 ] ]", "[IN:WAKE [SL:TIME at 8 ] ]"]


def test_punctuation_and_case_make_no_other_parse():
    rows = [
        ("wake me at 8", "[IN:WAKE wake me [SL:TIME at 8 ] ]"),
        ("Wake me at 8.", "[IN:WAKE Wake me [SL:TIME at 8 ] . ]"),
    ]
    assert counts(rows) == {}


def test_rows_in_both_splits():
    again, other = pairs("[IN:WAKE Wake me [SL:TIME at 8 ] ! ]", "[IN:WAKE wake me at [SL:TIME 8 ] ]")
    assert counts(GOOD, [again]) == {FindingKind.LEAK: 1}
    assert counts(GOOD, [other]) == {FindingKind.LEAK: 1, FindingKind.CONTRADICTION: 1}
    finding = first(FindingKind.CONTRADICTION, GOOD, [other])
    assert str(finding.where) == "the eval data, line 1"
    assert finding.parses[1].caption == "the data, line 1"


@pytest.mark.parametrize("words", ["wake me at nine", "please wake me at 8", "at wake me 8", "me at 8"])
def test_near_duplicates(words):
    assert counts(GOOD, pairs(f"[IN:WAKE {words} ]")) == {FindingKind.NEAR_DUPLICATE: 1}


@pytest.mark.parametrize("words", ["call me at nine", "at 8 wake me", "me 8", "wake", "wake me at nine thirty"])
def test_others_are_no_near_duplicates(words):
    assert counts(GOOD, pairs(f"[IN:WAKE {words} ]")) == {}


def test_labels_with_few_rows():
    found = check_rows(GOOD, config=CheckConfig(min_rows=2))
    assert [finding.found for finding in found.examples[FindingKind.RARE_LABEL]] == [
        "IN:RAIN is in one row",
        "IN:WAKE is in one row",
    ]
    assert found.counts[FindingKind.RARE_LABEL] == 2


def test_labels_and_nestings_in_eval_only():
    other = pairs("[IN:WAKE do wake [SL:WHO anna ] now ]", "[IN:WAKE ring again [SL:TIME [IN:RAIN if it rains ] ] ]")
    assert counts(GOOD, other) == {FindingKind.UNSEEN_LABEL: 1, FindingKind.UNSEEN_NESTING: 1}
    assert first(FindingKind.UNSEEN_LABEL, GOOD, other).found == "SL:WHO is in one row of eval and in no training row"
    assert "IN:RAIN below SL:TIME" in first(FindingKind.UNSEEN_NESTING, GOOD, other).found


def test_a_nesting_that_occurs_once():
    rows = pairs(
        "[IN:A a [SL:T b ] ]", "[IN:A c [SL:T d ] ]", "[IN:B e [SL:T f ] ]", "[IN:B g ]", "[IN:C h [SL:T i ] ]"
    )
    # IN:C is in one row only: that is said of the label already.
    assert first(FindingKind.RARE_NESTING, rows).found == "SL:T below IN:B is in one row"


@pytest.mark.parametrize(
    ("utterance", "parse"),
    [
        ("wake me tomorrow", "[IN:A wake me [SL:T to ] morrow ]"),
        ("wake me tomorrow", "[IN:A wake me to [SL:T morrow ] ]"),
        ("wake me at 800", "[IN:A wake me at [SL:T 8 ] 00 ]"),
    ],
)
def test_spans_that_cut_words(utterance, parse):
    assert counts([(utterance, parse)]) == {FindingKind.CUT_WORD: 1}


@pytest.mark.parametrize(
    ("utterance", "parse"),
    [
        ("call mom's phone", "[IN:A call [SL:T mom ] 's phone ]"),
        ("wake me at 8am", "[IN:A wake me at [SL:T 8 ] am ]"),
        ("wake me at 8.", "[IN:A wake me at [SL:T 8 ] . ]"),
        ("明天下雨吗", "[IN:A [SL:T 明天 ] 下雨吗 ]"),
        ("wake me", "[IN:A wake [SL:T ] me ]"),
    ],
)
def test_spans_that_cut_no_words(utterance, parse):
    assert counts([(utterance, parse)]) == {}


@pytest.mark.parametrize(
    "span", ["at 8 ?", "at 8 !", ", at 8", "at 8 .", "at 8 please", "at 8 Thank you", "noon .", "at 8 ,"]
)
def test_stray_text(span):
    found = first(FindingKind.STRAY_TEXT, pairs(f"[IN:A wake me [SL:T {span} ] ]"))
    assert found.severity is Severity.HINT
    assert found.utterance == f"wake me {span}"


@pytest.mark.parametrize("span", ["at 8", "at 8 a.m.", "the please song", "8 : 30", "$ 5", "o'clock"])
def test_no_stray_text(span):
    assert counts(pairs(f"[IN:A wake me [SL:T {span} ] ]")) == {}


def test_a_blank_in_a_span():
    value = Frame.from_brackets("[IN:A wake [SL:T me ] ]").to_json() | {
        "utterance": "wake  me",
        "words": ["wake", " me"],
    }
    frame = Frame.from_json(value)
    assert counts([Row(frame.skeleton, frame)]) == {FindingKind.STRAY_TEXT: 1}


def test_what_most_spans_of_a_label_include_belongs_to_it():
    inside = pairs(*(f"[IN:SEND text [SL:MESSAGE {n} really ? ] ]" for n in range(12)))
    outside = pairs(*(f"[IN:SEND text [SL:MESSAGE {n} really ] ? ]" for n in range(20, 33)))
    assert counts(inside) == counts(outside) == {}
    assert counts(inside[:9]) == {FindingKind.STRAY_TEXT: 9}
    assert counts([*inside, *outside]) == {FindingKind.STRAY_TEXT: 12}


def test_rows_for_which_a_model_is_confident_of_another_parse():
    other = Frame.from_brackets("[IN:RAIN x ]")
    confidences = {"8": 0.95, "noon": 0.99}

    def annotate(rows):
        return [
            ModelParse(other, is_same="dawn" in row.frame.words, confidence=confidences.get(row.frame.words[-1], 0.5))
            if len(row.frame.words) > 1
            else None
            for row in rows
        ]

    rows = [*GOOD, *pairs("[IN:WAKE at dusk ]", "[IN:WAKE till dawn ]", "[IN:WAKE hello ]")]
    report = check_rows(rows, annotate=annotate, config=EXACT)
    suspects = report.examples[FindingKind.LIKELY_ERROR]
    assert report.counts[FindingKind.LIKELY_ERROR] == 2
    assert [finding.where.line for finding in suspects] == [2, 1], "the most suspicious first"
    assert [quote.caption for quote in suspects[0].parses] == ["this row", "model"]
    assert "not compared with the model: one row" in report.notes[0]
    best = check_rows(rows, annotate=annotate, config=replace(EXACT, examples=1)).examples[FindingKind.LIKELY_ERROR]
    assert best == suspects[:1]


def test_trees_without_utterances_have_labels(tmp_path):
    (tmp_path / "trees.txt").write_text("[S [NP ] [VP ] ]\n")
    assert counts(tmp_path / "trees.txt", config=CheckConfig()) == {FindingKind.RARE_LABEL: 3}


def test_a_folder_and_what_each_file_has(tmp_path):
    header = "domain\tutterance\tsemantic_parse\n"
    for name in ("alarm", "music"):
        (tmp_path / f"{name}_train.tsv").write_text(f"{header}{name}\tplay it\t[IN:{name.upper()} play it ]\n")
    finding = first(FindingKind.CONFLICT, tmp_path)
    assert finding.where.file == str(tmp_path / "music_train.tsv")
    assert finding.parses[1].caption == f"{tmp_path / 'alarm_train.tsv'}, line 2"


def test_examples_are_few_and_counts_are_exact():
    rows = pairs(*(f"[IN:A wake me [SL:T at {n} ? ] ]" for n in range(9)))
    report = check_rows(rows, config=replace(EXACT, examples=2))
    assert report.counts[FindingKind.STRAY_TEXT] == 9
    assert [finding.where.line for finding in report.examples[FindingKind.STRAY_TEXT]] == [1, 2]
    assert not check_rows(rows, config=replace(EXACT, examples=0)).examples[FindingKind.STRAY_TEXT]


def test_a_full_table_is_noted():
    report = check_rows(rows_of(50), rows_of(20, seed=1), config=CheckConfig(max_signatures=40))
    assert any("not compared with others" in note for note in report.notes)


def test_bad_input():
    with pytest.raises(DataError, match="the eval data: there are no rows"):
        check_rows(GOOD, [])
    with pytest.raises(OptionError, match="min_confidence"):
        CheckConfig(min_confidence=2)
    with pytest.raises(OptionError, match="examples"):
        CheckConfig(examples=-1)


def test_rows_that_are_not_at_hand_are_places():
    finding = first(FindingKind.CONFLICT, iter(pairs("[IN:A play it ]", "[IN:B play it ]")))
    assert finding.found == "the utterance has another parse than in the data, line 1"
    assert [quote.caption for quote in finding.parses] == ["this row"]


words = st.sampled_from("abcd")
parses = st.builds(
    lambda before, value, label: f"[IN:{label} {' '.join(before)} [SL:S {' '.join(value)} ] ]",
    st.lists(words, min_size=1, max_size=3),
    st.lists(words, min_size=1, max_size=2),
    st.sampled_from("AB"),
)
tables = st.lists(parses, min_size=1, max_size=12).map(lambda found: pairs(*found))


@given(tables, tables, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(train, other, random):
    before = check_rows(train, other).counts
    random.shuffle(train)
    random.shuffle(other)
    assert check_rows(train, other).counts == before


def parses_by_utterance(rows):
    found = defaultdict(set)
    for utterance, parse in rows:
        found[tuple(normal_words(utterance))].add(parse_signature(Frame.from_brackets(parse, utterance)))
    return found


def left_out(utterance):
    return {utterance, *(utterance[:n] + utterance[n + 1 :] for n in range(len(utterance)) if len(utterance) > 3)}


@given(tables, tables)
def test_counts_are_those_of_the_definitions(train, other):
    known, new = parses_by_utterance(train), parses_by_utterance(other)
    expected = dict.fromkeys((FindingKind.LEAK, FindingKind.CONTRADICTION, FindingKind.NEAR_DUPLICATE), 0)
    expected[FindingKind.CONFLICT] = sum(len(some) > 1 for some in (*known.values(), *new.values()))
    for utterance, parse in other:
        key = tuple(normal_words(utterance))
        signature = parse_signature(Frame.from_brackets(parse, utterance))
        if key in known:
            expected[FindingKind.LEAK] += 1
            expected[FindingKind.CONTRADICTION] += len(known[key]) == 1 and signature not in known[key]
        else:
            expected[FindingKind.NEAR_DUPLICATE] += any(left_out(key) & left_out(one) for one in known)
    found = check_rows(train, other).counts
    assert {kind: found[kind] for kind in expected} == expected


def test_the_toy_grammar_has_neither_conflicts_nor_cut_words():
    found = check_rows(rows_of(2_000)).counts
    assert found[FindingKind.CONFLICT] == found[FindingKind.CUT_WORD] == found[FindingKind.UNREADABLE] == 0


@pytest.mark.slow
def test_no_row_is_kept_of_100_000(tmp_path):
    alive, most = set(), 0

    def generate(n):
        nonlocal most
        for number in range(n):
            frame = Frame.from_brackets(f"[IN:WAKE wake me [SL:TIME at {number} ? ] ]")
            alive.add(weakref.ref(frame, alive.discard))
            most = max(most, len(alive))
            yield Row(frame.skeleton, frame)

    report = check_rows(generate(100_000), generate(1_000), annotate=lambda rows: [None] * len(rows))
    assert (report.rows, report.eval_rows, report.counts[FindingKind.LEAK]) == (100_000, 1_000, 1_000)
    assert most < 400, "a batch for the model, and a few examples"


def test_topv2(topv2):
    """Its errors are found: about 3 % of the eval rows that are also in train have another parse there."""
    report = check_rows(topv2, topv2)
    assert (report.rows, report.eval_rows) == (124_597, 17_160)
    share = report.counts[FindingKind.CONTRADICTION] / report.counts[FindingKind.LEAK]
    assert 0.02 < share < 0.04
    assert report.counts[FindingKind.UNREADABLE] == report.counts[FindingKind.CUT_WORD] == 0
