"""Calls of tools: the call of every parse of a model is valid for the schema of its function."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import frames, top_trees

from treepiece import Parser
from treepiece.data.toy import toy_frames, toy_rows
from treepiece.decoding.search import label_pairs
from treepiece.definition import DecoderConfig, Definition, ModelKind
from treepiece.errors import OptionError
from treepiece.integrations.tool_calls import ToolSet
from treepiece.runtime.result import Candidate, Result
from treepiece.trees.frame import Frame


def is_valid(value, schema, root):
    """Whether a value is valid for a schema with the keywords that tools use; another keyword is an error."""
    rules = {
        "$defs": lambda _: True,
        "$ref": lambda path: is_valid(value, root["$defs"][path.removeprefix("#/$defs/")], root),
        "type": lambda name: isinstance(value, {"object": dict, "array": list, "string": str}[name]),
        "const": lambda one: value == one,
        "anyOf": lambda parts: any(is_valid(value, part, root) for part in parts),
        "items": lambda part: not isinstance(value, list) or all(is_valid(one, part, root) for one in value),
        "required": lambda keys: not isinstance(value, dict) or set(keys) <= set(value),
        "properties": lambda parts: (
            not isinstance(value, dict)
            or all(is_valid(value[key], part, root) for key, part in parts.items() if key in value)
        ),
        "additionalProperties": lambda _: not isinstance(value, dict) or set(value) <= set(schema["properties"]),
    }
    return all(rules[keyword](argument) for keyword, argument in schema.items())


def functions(tools):
    return {schema["function"]["name"]: schema["function"] for schema in tools.schemas}


def is_a_call(value, tools):
    found = functions(tools).get(value["name"])
    return set(value) == {"name", "arguments"} and is_valid(
        value["arguments"], found["parameters"], found["parameters"]
    )


def candidate(frame):
    return Candidate(frame, 0.75, (0.5,) * len(frame.leaves), 1.0, (), (), 1)


def define(skeletons, kind=ModelKind.AR):
    return Definition.of_trees(kind, skeletons, decoder=DecoderConfig())


def texts_in(value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for one in value for text in texts_in(one)]
    if set(value) == {"name", "arguments"}:
        return texts_in(value["arguments"])
    return [text for one in value.values() for text in texts_in(one)]


WORDS = ["play", "x", "y"]


@given(st.lists(frames(WORDS), min_size=1, max_size=4), frames(WORDS))
def test_the_call_of_every_parse_is_valid(known, other):
    """A parse has the pairs of labels of the training data, in trees that may be new."""
    skeletons = [frame.skeleton for frame in known]
    tools = ToolSet(define(skeletons))
    parses = [*known, *[other] * (label_pairs([other.skeleton]) <= label_pairs(skeletons))]
    for frame in parses:
        call = tools.call(candidate(frame))
        assert is_a_call(call, tools)
        assert sorted(texts_in(call)) == sorted(leaf.text for leaf in frame.leaves)
    assert json.loads(json.dumps(tools.schemas)) == tools.schemas


@given(st.lists(top_trees, min_size=1, max_size=3))
def test_any_labels(trees):
    """Slots below slots, intents below intents, and names that functions cannot have."""
    parsed = [Frame.from_tree(tree) for tree in trees]
    tools = ToolSet(define([frame.skeleton for frame in parsed]))
    assert all(is_a_call(tools.call(candidate(frame)), tools) for frame in parsed)
    assert len(set(tools.names.values())) == len(tools.names)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in tools.names.values())


@given(st.lists(frames(WORDS), min_size=1, max_size=4), frames(WORDS))
def test_a_non_autoregressive_parser_keeps_to_no_pairs(known, other):
    definition = define([frame.skeleton for frame in known], ModelKind.NAR)
    tools = ToolSet(definition)
    if {node.label for node in other.skeleton.nodes()} <= set(definition.labels):
        assert is_a_call(tools.call(candidate(other)), tools)


def test_nested_intents_and_repeated_slots():
    frame = Frame.from_brackets(
        "[IN:REMIND [SL:WHO me ] to [SL:TODO [IN:CALL call [SL:NAME mom ] and [SL:NAME dad ] ] ] [SL:TODO sleep ] ]"
    )
    tools = ToolSet(define([frame.skeleton]))
    call = tools.call(candidate(frame))
    assert call == {
        "name": "REMIND",
        "arguments": {
            "WHO": ["me"],
            "TODO": [{"name": "CALL", "arguments": {"NAME": ["mom", "dad"]}}, "sleep"],
        },
    }
    (function,) = functions(tools).values()
    assert function == {
        "name": "REMIND",
        "description": "remind",
        "parameters": {
            "type": "object",
            "properties": {
                "TODO": {"type": "array", "items": {"$ref": "#/$defs/TODO"}},
                "WHO": {"type": "array", "items": {"type": "string"}},
            },
            "additionalProperties": False,
            "$defs": {
                "CALL": {
                    "type": "object",
                    "properties": {
                        "name": {"const": "CALL"},
                        "arguments": {
                            "type": "object",
                            "properties": {"NAME": {"type": "array", "items": {"type": "string"}}},
                            "additionalProperties": False,
                        },
                    },
                    "required": ["name", "arguments"],
                    "additionalProperties": False,
                },
                "TODO": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/CALL"}]},
            },
        },
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {"WHO": "me"},
        {"WHO": [1]},
        {"WHO": [{"name": "CALL", "arguments": {}}]},
        {"WHERE": ["here"]},
        {"TODO": [{"name": "REMIND", "arguments": {}}]},
        {"TODO": [{"name": "CALL"}]},
        {"TODO": [{"name": "CALL", "arguments": {"WHO": ["me"]}}]},
    ],
)
def test_the_schema_refuses_other_calls(arguments):
    frame = Frame.from_brackets("[IN:REMIND [SL:WHO me ] [SL:TODO [IN:CALL [SL:NAME mom ] ] ] ]")
    tools = ToolSet(define([frame.skeleton]))
    assert not is_a_call({"name": "REMIND", "arguments": arguments}, tools)


def test_a_text_that_was_not_understood_is_no_call():
    frame = next(iter(toy_frames(1)))
    result = Result(frame.utterance, (candidate(frame),), understood=False)
    tools = ToolSet(define([frame.skeleton]))
    assert tools.call(result) is None
    assert tools.call(result.best) is not None


def test_a_parse_of_another_model():
    tools = ToolSet(define([Frame.from_brackets("[IN:A ]").skeleton]))
    with pytest.raises(OptionError, match="the model of these tools has no label 'IN:B'"):
        tools.call(candidate(Frame.from_brackets("[IN:B ]")))


def test_the_bundled_model():
    parser = Parser("bundled", threads=1)
    tools = ToolSet(parser)
    texts = [utterance for _, utterance, _ in toy_rows(40)]
    for result in parser(texts, nbest=3):
        for one in (result, *result.candidates):
            assert is_a_call(tools.call(one), tools)
