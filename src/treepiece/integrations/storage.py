"""Answers as text, which can be saved and sent to other processes, and back."""

from __future__ import annotations

import json

from treepiece.runtime.result import Candidate, Result
from treepiece.trees.frame import Frame


def write_result(result: Result) -> str:
    """Return a result as JSON; unlike its `to_json`, nothing of it is lost."""
    candidates = [
        {
            "frame": one.frame.to_json(),
            "confidence": one.confidence,
            "leaf_confidences": one.leaf_confidences,
            "score": one.score,
            "units": one.units,
            "unit_places": one.unit_places,
            "passes": one.passes,
        }
        for one in result.candidates
    ]
    value = {
        "text": result.text,
        "understood": result.understood,
        "candidates": candidates,
        "times": dict(result.times),
    }
    return json.dumps(value, ensure_ascii=False)


def read_result(text: str) -> Result:
    """Return the result that `write_result` was given.

    >>> frame = Frame.from_brackets("[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]")
    >>> result = Result("rain today", (Candidate(frame, 0.9, (0.8,), 1.0, (), (), 1),))
    >>> read_result(write_result(result)) == result
    True
    """
    value = json.loads(text)
    candidates = tuple(
        Candidate(
            Frame.from_json(one["frame"]),
            one["confidence"],
            tuple(one["leaf_confidences"]),
            one["score"],
            tuple(one["units"]),
            tuple(one["unit_places"]),
            one["passes"],
        )
        for one in value["candidates"]
    )
    return Result(value["text"], candidates, value["understood"], value["times"])
