"""Importers: what each format can express comes out as the same frame, and what is wrong is said."""

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import skeletons

from treepiece.data.importers.importing import ImportFormat, guess_format, import_lines, import_rows
from treepiece.data.importers.naming import LabelClashError
from treepiece.data.reader import load_rows, read_rows
from treepiece.data.rows import ReadReport
from treepiece.errors import DataError, OptionError
from treepiece.trees.align import Span
from treepiece.trees.frame import Frame, leaf_labels
from treepiece.trees.labels import EntityName, slot_label
from treepiece.trees.node import Node

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install 'treepiece[train]'")

RASA = """
version: "3.1"
nlu:
- intent: book_flight
  examples: |
    - fly to [new york](city) please
    - from [oslo]{"entity": "city", "role": "departure"} to [NYC]{"entity": "city", "value": "new york", "group": "1"}
- intent: faq/ask_name
  examples:
  - text: |
      who are you?
    metadata: {sentiment: neutral}
- synonym: new york
  examples: |
    - NYC
- lookup: city
  examples: |
    - oslo
- regex: zip
  examples: |
    - \\d{5}
responses:
  utter_name: [{text: a parser}]
"""
CONLL = "play O\nsome O\nnew B-genre\njazz I-genre\nPlayMusic\n\n"
MTOP = "\t".join(
    [
        "1",
        "IN:SEND_MESSAGE",
        "5:8:SL:RECIPIENT",
        "text mom hi mom",
        "messaging",
        "en_XX",
        "[IN:SEND_MESSAGE [SL:RECIPIENT mom ] ]",
        json.dumps({"tokens": ["text", "mom", "hi", "mom"], "tokenType": ["WORD"] * 4}),
    ]
)


def write(folder, text, name):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def imported(text, source_format, folder, **changes):
    """Return the rows of a file, and the report."""
    report = ReadReport(**changes)
    return list(import_rows(write(folder, text, "file"), source_format, report)), report


def parses(rows):
    return [(row.frame.utterance, row.frame.to_brackets()) for row in rows]


def test_rasa(tmp_path):
    rows, report = imported(RASA, ImportFormat.RASA, tmp_path)
    assert parses(rows) == [
        ("fly to new york please", "[IN:BOOK_FLIGHT [SL:CITY new york ] ]"),
        ("from oslo to NYC", "[IN:BOOK_FLIGHT [SL:CITY/DEPARTURE oslo ] [SL:CITY#1 NYC ] ]"),
        ("who are you?", "[IN:FAQ/ASK_NAME ]"),
    ]
    assert [row.line for row in rows] == [6, 7, 10]
    assert (report.n_rows, report.bad_rows) == (3, [])
    assert report.left_out == {
        "values of entities": 1,
        "synonyms": 1,
        "lookup tables": 1,
        "regular expressions": 1,
        "sections other than nlu": 1,
    }


def test_a_folder_of_rasa_files(tmp_path):
    write(tmp_path, RASA, "a.yml")
    write(tmp_path, "stories: []\n", "b.yaml")
    (tmp_path / "more").mkdir()
    write(tmp_path / "more", "nlu:\n- intent: greet\n  examples: |\n    - hi\n", "c.yml")
    assert [row.skeleton.label for row in import_rows(tmp_path)] == [
        "IN:BOOK_FLIGHT",
        "IN:BOOK_FLIGHT",
        "IN:FAQ/ASK_NAME",
        "IN:GREET",
    ]


def test_rasa_is_read_item_by_item():
    """A row comes out before the file has been read to its end."""
    item = "- intent: greet\n  examples: |\n    - hi\n"

    class Endless(io.RawIOBase):
        n_bytes = 0

        def read(self, size):
            self.n_bytes += size
            assert self.n_bytes < 1 << 20
            return (b"nlu:\n" if self.n_bytes == size else b"") + item.encode() * 100

    from treepiece.data.importers.naming import LabelNames
    from treepiece.data.importers.rasa import read_rasa

    rows = read_rasa(Endless(), "endless", ReadReport(), LabelNames())
    assert [next(rows).frame.utterance for _ in range(50)] == ["hi"] * 50


@pytest.mark.parametrize(
    "text",
    [
        CONLL,
        CONLL.rstrip("\n"),
        "\ufeffPlayMusic\nplay\tO\nsome\tO\nnew\tB-genre\njazz\tI-genre\n",
        "play O PlayMusic\r\nsome O PlayMusic\r\nnew B-genre PlayMusic\r\njazz I-genre PlayMusic\r\n",
        "\n\nplay O PlayMusic\nsome O\nnew B-genre\njazz I-genre\n\n\n",
    ],
    ids=["own line", "no end", "line before, BOM, tabs", "column, CRLF", "column of the first token"],
)
def test_conll(text, tmp_path):
    rows, report = imported(text, ImportFormat.BIO, tmp_path)
    assert parses(rows) == [("play some new jazz", "[IN:PLAYMUSIC [SL:GENRE new jazz ] ]")]
    assert not report.bad_rows
    assert guess_format(tmp_path / "file") is ImportFormat.BIO


def write_folder(folder, tokens, tags, intents):
    for name, lines in (("seq.in", tokens), ("seq.out", tags), ("label", intents)):
        write(folder, "".join(f"{line}\n" for line in lines), name)
    return folder


def test_a_bio_folder(tmp_path):
    write_folder(tmp_path, ["play jazz", "stop"], ["O B-genre", "O"], ["PlayMusic", "atis_a#atis_b"])
    assert parses(import_rows(tmp_path)) == [
        ("play jazz", "[IN:PLAYMUSIC [SL:GENRE jazz ] ]"),
        ("stop", "[IN:ATIS_A#ATIS_B ]"),
    ]


def test_a_bio_folder_whose_files_differ_in_length(tmp_path):
    write_folder(tmp_path, ["play jazz", "stop"], ["O B-genre"], ["PlayMusic"])
    with pytest.raises(DataError, match=r"seq.out, label has 1 lines, and the others have more"):
        list(import_rows(tmp_path, None, ReadReport()))
    (tmp_path / "label").unlink()
    with pytest.raises(DataError, match="label: cannot be read: No such file"):
        list(import_rows(tmp_path))


def test_mtop(tmp_path):
    rows, _ = imported(f"id\tintent\n{MTOP}\n\n", ImportFormat.MTOP, tmp_path)
    assert parses(rows) == [("text mom hi mom", "[IN:SEND_MESSAGE [SL:RECIPIENT mom ] ]")]
    assert rows[0].frame.spans == (Span(1, 2),)
    assert (rows[0].domain, rows[0].line) == ("messaging", 2)
    assert guess_format(tmp_path / "file") is ImportFormat.MTOP


def mtop_line(**changes):
    names = "id", "intent", "slots", "utterance", "domain", "locale", "tree", "tokens"
    return "\t".join({**dict(zip(names, MTOP.split("\t"), strict=True)), **changes}.values())


RASA_ITEM = "nlu:\n- intent: a\n  examples: |\n    - "


@pytest.mark.parametrize(
    ("source_format", "text", "line", "reason"),
    [
        ("rasa", RASA_ITEM + "to [oslo(city)", 4, "col 4: '[' has no ']' before the next '[' or the end"),
        ("rasa", RASA_ITEM + "[a [b](city)", 4, "col 1: '[' has no ']' before the next '[' or the end"),
        ("rasa", RASA_ITEM + "oslo](city)", 4, "col 5: ']' closes no '['"),
        ("rasa", RASA_ITEM + "[oslo] now", 4, "col 6: no entity after ']'"),
        ("rasa", RASA_ITEM + "[oslo](city", 4, "col 7: '(' has no ')'"),
        ("rasa", RASA_ITEM + "[oslo]()", 4, "an entity has no name"),
        ("rasa", RASA_ITEM + "[ ](city)", 4, "col 1: an entity without text"),
        ("rasa", RASA_ITEM + '[oslo]{"entity": }', 4, "col 7: not JSON"),
        ("rasa", RASA_ITEM + '[oslo]{"role": "a"}', 4, "col 7: expected texts as entity, role and group"),
        ("rasa", RASA_ITEM + '[oslo]{"entity": "a", "rule": "a"}', 4, "col 7: the key 'rule' is not known"),
        ("rasa", RASA_ITEM + '[oslo][{"entity": "a"}]', 4, "col 7: several entities on one text"),
        ("rasa", RASA_ITEM + "\n", 4, "an example without words"),
        ("rasa", RASA_ITEM + "a\n    b\n", 5, "expected an example, which begins with `- `, found 'b'"),
        ("rasa", "nlu:\n- intent: a\n  examples: hi\n", 3, "begins with `- `, after `examples: |`, found 'hi'"),
        ("rasa", "nlu:\n- intent: a\n  examples: {}\n", 3, "expected `examples: |`"),
        ("rasa", "nlu:\n- intent: a\n  examples:\n  - tixt: a\n", 4, "expected an example with `text`"),
        ("rasa", "nlu:\n- intent: a\n", 2, "expected an item with `intent` and `examples`, found intent"),
        ("rasa", "nlu:\n- greet\n", 2, "expected an item with `intent` and `examples`, found no keys"),
        ("bio", "play O\njazz I-genre\nA\n", 1, "token 2, 'jazz': I-genre does not continue a slot"),
        ("bio", "a B-x\nb I-y\nA\n", 1, "token 2, 'b': I-y does not continue a slot: begin the slot with B-y"),
        ("bio", "a B-x\nb O\nc I-x\nA\n", 1, "token 3, 'c': I-x does not continue a slot"),
        ("bio", "a E-x\nA\n", 1, "token 1, 'a': expected the tag O, B-NAME or I-NAME, found 'E-x'"),
        ("bio", "a B-\nA\n", 1, "found 'B-'"),
        ("bio", "a O\n", 1, "found no intent"),
        ("bio", "a O A\nb O B\n", 1, "found the intents A, B"),
        ("bio", "a O\nb\nc O\nA\n", 1, "line 2: found 1 column"),
        ("bio", "a O\nb N X O\nA\n", 1, "line 2: found 4 columns"),
        ("bio", "A\n", 1, "an utterance without tokens"),
        ("bio", b"a O\n\xff O\nb O\nA\n\n", 2, "byte 1 is not UTF-8"),
        ("mtop", "a\tb\n", 1, "expected eight columns, id, intent, slots, utterance, domain, locale, decoupled tree"),
        ("mtop", b"\xff\n", 1, "byte 1 is not UTF-8"),
        ("mtop", mtop_line(tokens="x"), 1, "not JSON"),
        ("mtop", mtop_line(tokens="{}"), 1, "tokens: expected an object with a list of words"),
        ("mtop", mtop_line(slots="x"), 1, "slots: expected START:END:LABEL"),
        ("mtop", mtop_line(slots=""), 1, "the words 'mom' of SL:RECIPIENT occur more than once in"),
        ("mtop", mtop_line(tree="[IN:A [SL:B dad ] ]"), 1, "the words 'dad' of SL:B are not in the utterance"),
        ("mtop", mtop_line(tree="[IN:A [SL:B text hi ] ]"), 1, "the words 'text hi' of SL:B are not in the utterance"),
        ("mtop", mtop_line(tree="[IN:A [SL:B hi ] [SL:C text ] ]"), 1, "the words 'text' of SL:C are not"),
        ("mtop", mtop_line(tree="[IN:A text [SL:B hi ] ]"), 1, "1 of its words are outside of the leaves"),
        ("mtop", mtop_line(tree="[IN:A"), 1, "the text ends but [IN:A of col 1 is still open"),
        ("mtop", mtop_line(utterance="text dad"), 1, "they must be equal up to whitespace"),
    ],
)
def test_bad_rows(source_format, text, line, reason, tmp_path):
    """They are counted with their line and the reason; when strict, the first raises the same."""
    rows, report = imported(text, ImportFormat(source_format), tmp_path)
    (bad,) = report.bad_rows
    assert (bad.file, bad.line) == (str(tmp_path / "file"), line)
    assert reason in bad.reason
    assert len(rows) == report.n_rows
    with pytest.raises(DataError) as found:
        imported(text, ImportFormat(source_format), tmp_path, strict=True)
    assert str(found.value) == str(bad)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nlu:\n- intent: a\n  examples: |\n - b\n", "file, line 4: not YAML: "),
        ("nlu: [", "not YAML: "),
        ("nlu:\n- *a\n", "not YAML: found undefined alias"),
        ("- a\n", "not training data of Rasa: expected `nlu:`"),
        ("nlu: a\n", "file, line 1: expected a list of intents below `nlu:`"),
        (b"nlu:\n- intent: \xff\n", "byte 16 is not UTF-8"),
        (b"nlu:\n- intent: \x00\n", "YAML does not allow the character '\\x00'"),
        ("nlu:\n- " + "[" * 5000, "nested too deep"),
    ],
)
def test_files_that_are_not_rasas(text, reason, tmp_path):
    """Nothing after the place can be read, so they raise, strict or not."""
    with pytest.raises(DataError) as found:
        imported(text, ImportFormat.RASA, tmp_path)
    assert reason in str(found.value)


@pytest.mark.parametrize(
    ("source_format", "text", "reason"),
    [
        (
            "rasa",
            RASA_ITEM + "[b](City)\n    - [b](city)",
            "line 5: the entity 'City' and the entity 'city' both become SL:CITY: rename one",
        ),
        (
            "rasa",
            RASA_ITEM + 'b\n- intent: "A"\n  examples: |\n    - b\n',
            "line 7: the intent 'a' and the intent 'A' both become IN:A",
        ),
        (
            "rasa",
            RASA_ITEM + '[b]{"entity": "b", "role": "c d"}\n    - [b]{"entity": "b", "role": "c_d"}',
            "the entity 'b' with the role 'c d' and the entity 'b' with the role 'c_d' both become SL:B/C_D",
        ),
        ("bio", "a B-x\nA\n\na B-X\nA\n", "line 4: the entity 'x' and the entity 'X' both become SL:X"),
    ],
)
def test_labels_that_would_mix(source_format, text, reason, tmp_path):
    with pytest.raises(LabelClashError) as found:
        imported(text, ImportFormat(source_format), tmp_path)
    assert reason in str(found.value)


def test_marks_in_names_do_not_make_roles():
    assert slot_label(EntityName("a/b#c", "d/e")) == "SL:A_B_C/D_E"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("nlu.yml", "", "rasa"),
        ("nlu.yaml", "", "rasa"),
        ("train.txt", MTOP, "mtop"),
        ("train.txt", "a\tO\nb\tB-x\n", "bio"),
    ],
)
def test_formats_are_guessed(name, text, expected, tmp_path):
    assert guess_format(write(tmp_path, text, name)) == expected


def test_what_cannot_be_guessed(tmp_path):
    for source in (write(tmp_path, "wake me\t[IN:A ]\n", "my.tsv"), tmp_path):
        with pytest.raises(DataError, match="give --format rasa, bio or mtop"):
            list(import_rows(source))
    with pytest.raises(DataError, match="standard input has no name"):
        list(import_rows("-"))
    with pytest.raises(DataError, match="No such file"):
        list(import_rows(tmp_path / "nothing"))
    with pytest.raises(DataError, match="a folder: for the format mtop, give a file"):
        list(import_rows(tmp_path, ImportFormat.MTOP))
    with pytest.raises(DataError, match="give files that end in .yml"):
        list(import_rows(tmp_path, ImportFormat.RASA))


def test_words_that_top_text_cannot_hold_are_bad_only_as_text(tmp_path):
    path = write(tmp_path, "] O\nb B-x\nA\n", "file")
    (row,) = import_rows(path)
    assert row.frame.words == ("]", "b")
    report = ReadReport()
    assert list(import_lines(path, None, report)) == []
    assert "the word ']' cannot be written as bracket text" in report.bad_rows[0].reason


def test_half_characters_are_bad_only_as_text(tmp_path):
    path = write(tmp_path, 'nlu:\n- intent: a\n  examples: "- \\ud800"\n', "nlu.yml")
    report = ReadReport()
    assert list(import_lines(path, None, report)) == []
    assert "cannot be written as UTF-8" in report.bad_rows[0].reason


def test_without_yaml_the_hint_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(OptionError, match=r"this `treepiece data import` needs yaml, .*train"):
        list(import_rows(write(tmp_path, RASA, "nlu.yml")))


words = st.text(st.characters(categories=("L", "N", "P", "S"), exclude_characters="[]"), min_size=1, max_size=4)
entity_names = st.builds(
    EntityName,
    st.sampled_from(["city", "time"]),
    st.sampled_from([None, "from", "to"]),
    st.sampled_from([None, "1", "2"]),
)


@st.composite
def flat(draw, names):
    """An utterance with slots of one or more words, as words and their slots."""
    tokens = draw(st.lists(words, min_size=1, max_size=7))
    cuts = sorted(draw(st.sets(st.integers(0, len(tokens)), max_size=6)))
    spans = [Span(*pair) for pair in zip(cuts, cuts[1:], strict=False) if draw(st.booleans())]
    return tokens, [(span, draw(names)) for span in spans]


def expected(tokens, slots):
    skeleton = Node("IN:ASK", [Node(slot_label(name)) for _, name in slots])
    return Frame(tuple(tokens), skeleton, tuple(span for span, _ in slots), " ".join(tokens))


def check(lines, frames, folder, source_format):
    """A file holds the frames, and so do the lines for training."""
    path = write(folder, "".join(lines), "file")
    assert [row.frame for row in import_rows(path, source_format)] == frames
    again = write(folder, "".join(import_lines(path, source_format, ReadReport(strict=True))), "again.tsv")
    assert [(row.frame, row.frame.utterance) for row in read_rows(again)] == [(one, one.utterance) for one in frames]


@given(st.lists(flat(entity_names), min_size=1, max_size=3))
def test_rasa_keeps_flat_frames(tmp_path_factory, drawn):
    lines = ["nlu:\n- intent: ask\n  examples: |\n"]
    for tokens, slots in drawn:
        text = list(tokens)
        for (start, end), name in slots:
            fields = {key: value for key, value in name._asdict().items() if value is not None}
            text[start] = f"[{text[start]}"
            text[end - 1] += f"]({name.entity})" if len(fields) == 1 else f"]{json.dumps(fields)}"
        lines.append(f"    - {' '.join(text)}\n")
    frames = [expected(*one) for one in drawn]
    check(lines, frames, tmp_path_factory.mktemp("rasa"), ImportFormat.RASA)


@given(st.lists(flat(st.sampled_from(["city", "time"]).map(EntityName)), min_size=1, max_size=3), st.booleans())
def test_bio_keeps_flat_frames(tmp_path_factory, drawn, is_column):
    tagged = []
    for tokens, slots in drawn:
        tags = ["O"] * len(tokens)
        for (start, end), name in slots:
            tags[start:end] = [f"B-{name.entity}", *[f"I-{name.entity}"] * (end - start - 1)]
        tagged.append((tokens, tags))
    frames = [expected(*one) for one in drawn]
    folder = tmp_path_factory.mktemp("bio")
    lines = []
    for tokens, tags in tagged:
        lines += [f"{token} {tag}{' ask' * is_column}\n" for token, tag in zip(tokens, tags, strict=True)]
        lines.append("\n" if is_column else "ask\n\n")
    check(lines, frames, folder, ImportFormat.BIO)
    columns = [" ".join(tokens) for tokens, _ in tagged], [" ".join(tags) for _, tags in tagged], ["ask"] * len(tagged)
    assert [row.frame for row in import_rows(write_folder(folder, *columns))] == frames


@st.composite
def decoupled(draw):
    """A frame whose leaves all have words; no word occurs twice."""
    skeleton = draw(skeletons)
    words, spans = [], []
    for _ in leaf_labels(skeleton):
        words += [f"w{len(words) + place}" for place in range(draw(st.integers(0, 2)))]
        start = len(words)
        words += [f"w{start + place}" for place in range(draw(st.integers(1, 2)))]
        spans.append(Span(start, len(words)))
    words.append("?")
    return Frame(tuple(words), skeleton, tuple(spans), " ".join(words[:-1]) + words[-1])


def mtop_of(frame, is_bytes=False, has_slots=True):
    """Return the line of a frame."""

    def place(char):
        return len(frame.utterance[:char].encode()) if is_bytes else char

    leaves, slots, end = iter(frame.leaves), [], 0
    for child in frame.skeleton.children:
        chars = [next(leaves).chars for _ in leaf_labels(child)]
        start, end = (chars[0].start, chars[-1].end) if chars else (end, end)
        slots.append(f"{place(start)}:{place(end)}:{child.label}")
    return mtop_line(
        slots=",".join(reversed(slots)) * has_slots,
        utterance=frame.utterance,
        tree=frame.to_brackets(),
        tokens=json.dumps({"tokens": frame.words}),
    )


@given(st.lists(decoupled(), min_size=1, max_size=3), st.booleans())
def test_mtop_keeps_nested_frames(tmp_path_factory, frames, has_slots):
    lines = [mtop_of(frame, has_slots=has_slots) + "\n" for frame in frames]
    check(lines, frames, tmp_path_factory.mktemp("mtop"), ImportFormat.MTOP)


@st.composite
def repetitive(draw):
    """A flat frame in which words occur more than once."""
    tokens = draw(st.lists(st.sampled_from(["a", "é", "ब"]), min_size=1, max_size=6))
    cuts = sorted(draw(st.sets(st.integers(0, len(tokens)), max_size=6)))
    spans = [Span(*pair) for pair in zip(cuts[::2], cuts[1::2], strict=False)]
    skeleton = Node("IN:ASK", [Node(draw(st.sampled_from(["SL:A", "SL:B"]))) for _ in spans])
    return Frame(tuple(tokens), skeleton, tuple(spans), " ".join(tokens))


@given(repetitive(), st.booleans())
def test_mtop_never_takes_the_wrong_one_of_equal_words(tmp_path_factory, frame, is_bytes):
    """Whether its slots count characters or bytes: where both could be meant, the row is bad."""
    rows, report = imported(mtop_of(frame, is_bytes), ImportFormat.MTOP, tmp_path_factory.mktemp("mtop"))
    assert [row.frame for row in rows] == [frame] * (not report.bad_rows)
    assert all("occur more than once" in bad.reason for bad in report.bad_rows)
    if frame.utterance.isascii():
        assert not report.bad_rows


def test_imported_rows_are_data_to_train_with(tmp_path):
    rows = list(import_rows(write(tmp_path, RASA, "nlu.yml")))
    assert load_rows(rows) == rows


PIECES = [
    "nlu:\n", "- intent: a\n", "  examples: |\n", "    - ", "[a](b)", "[a]{", '"entity": "b"', "}", "[", "]", "(",
    "&x ", "*x", "a", " ", "\n", "\t", "O", "B-x", "I-x", "-", ":", "{}", "? ", "!!int ", "%", "\x00", "\ud800",
    "\u2028", "é", "[IN:A ", "[SL:B ", MTOP,
]  # fmt: skip


@given(
    st.sampled_from(["", RASA_ITEM]),
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.sampled_from(ImportFormat),
)
def test_any_file(tmp_path_factory, begin, text, source_format):
    """Whatever a file holds, rows can be written or are bad, or the file is refused."""
    path = write(tmp_path_factory.mktemp("any"), (begin + text).encode(errors="surrogatepass"), "file")
    report = ReadReport()
    try:
        lines = list(import_lines(path, source_format, report))
    except DataError:
        return
    again = write(path.parent, "".join(lines), "again.tsv")
    assert len(list(read_rows(again))) == report.n_rows == len(lines)
