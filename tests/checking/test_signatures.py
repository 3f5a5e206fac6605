"""Signatures against their definitions."""

from hypothesis import given
from hypothesis import strategies as st

from treepiece.checking.checker import CheckConfig
from treepiece.checking.signatures import SignatureTable, near_signatures, normal_words, signature

utterances = st.lists(st.sampled_from("abc"), min_size=1, max_size=7)


def left_out(words):
    return {tuple(words), *((*words[:n], *words[n + 1 :]) for n in range(len(words)) if len(words) > 3)}


@given(utterances, utterances)
def test_near_duplicates_share_a_signature_and_others_do_not(first, second):
    is_shared = bool({*near_signatures(first)} & {*near_signatures(second)})
    assert is_shared == bool(left_out(first) & left_out(second))


@given(st.text())
def test_normal_words_are_normal(text):
    found = normal_words(text)
    assert bool(found) == bool(text.strip())
    assert all(word and not word.isspace() for word in found)


def test_what_makes_words_different():
    assert normal_words("WAKE me, at 8!") == normal_words("wake me at 8")
    assert normal_words("ﬁve") == normal_words("five")
    assert normal_words("👍") != normal_words("👎")
    assert normal_words("$ 5") != normal_words("5")
    assert normal_words("कि") != normal_words("का")


def test_long_utterances_have_one_signature():
    assert len(near_signatures(["a", "b"] * 500)) == 1
    assert signature(["\ud800"]) != signature(["\udfff"])


@given(st.lists(st.tuples(st.integers(1, 2**64 - 1) | st.integers(1, 9), st.integers(0, 2**64 - 1))))
def test_a_table_is_a_dictionary(entries):
    table, expected = SignatureTable(limit=10_000), {}
    for key, value in entries:
        table.put(key, value)
        expected[key] = value
    assert len(table) == len(expected)
    assert {key: table.get(key) for key in expected} == expected
    assert table.get(2**63 + 12345) == expected.get(2**63 + 12345)


def test_a_full_table_of_the_default_size_does_not_grow_again():
    limit = CheckConfig().max_signatures
    assert limit * 4 == (1 << 24) * 3, "16 bytes for each of 2**24 slots, three quarters of them in use"


def test_a_table_grows_up_to_its_limit():
    table = SignatureTable(limit=5_000)
    for key in range(1, 6_001):
        table.put(key << 40, key)
    assert (len(table), table.n_dropped) == (5_000, 1_000)
    assert all(table.get(key << 40) == key for key in range(1, 5_001))
    assert table.get(6_000 << 40) is None
