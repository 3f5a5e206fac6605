"""Trained bundles as `latency.py --bundles` times them: free to write what they will, in each way to decode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt
from encoders import runtime_encoder, torch_encoder
from timing import ENCODER, THREADS, Run, summarise

from treepiece.bundle import WEIGHTS, Bundle
from treepiece.decoding.parse import Parse
from treepiece.definition import ModelKind
from treepiece.errors import BundleError, OptionError
from treepiece.models.trained import load_model
from treepiece.options import one_of
from treepiece.runtime.ar import AutoregressiveRuntime
from treepiece.runtime.graphs import PREFIX, SKELETON, Array, Graphs, Precision
from treepiece.runtime.models import RuntimeModel, open_bundle
from treepiece.runtime.nar import NonAutoregressiveRuntime
from treepiece.runtime.parser import Parser
from treepiece.runtime.treepiece import TreePieceRuntime

AnyRuntime = TreePieceRuntime | AutoregressiveRuntime | NonAutoregressiveRuntime
_BLIND = (PREFIX, SKELETON)
"""Graphs that do not see the utterance; what they compute is kept."""
_SWITCHES = ("ranks", "judges")
"""The attributes with which a model's ranker and judge are switched on and off; they are on where there is one."""


@dataclass(frozen=True)
class Decoding:
    """One way to decode: keyword arguments of the `parse` of a parser's model, and which second looks it takes."""

    parse: Mapping[str, int] = field(default_factory=dict)
    looks: tuple[str, ...] = ()

    def fits(self, model: object) -> bool:
        """Return whether a model can decode so: one without a ranker cannot rank, one without a judge cannot judge.

        The last look is what a way is about; with a judge, a ranker has its say too, where there is one.
        """
        return not self.looks or bool(getattr(model, self.looks[-1], False))

    def set_up(self, model: object) -> None:
        """Switch the ranker and the judge of a model on or off, if it has them."""
        for switch in _SWITCHES:
            if getattr(model, switch, False):
                setattr(model, switch, switch in self.looks)


DECODINGS: Mapping[ModelKind, Mapping[str, Decoding]] = {
    ModelKind.TREEPIECE: {
        "greedy": Decoding({"beam": 1}),
        "beam_5": Decoding({"beam": 5}),
        "ranked": Decoding({"beam": 1}, ("ranks",)),  # a second look where the first is in doubt
        "judged": Decoding({"beam": 1}, ("ranks", "judges")),
        "beam_5_ranked": Decoding({"beam": 5}, ("ranks",)),
    },
    ModelKind.AR: {"greedy": Decoding({"beam": 1})},
    ModelKind.NAR: {"parallel": Decoding()},
}
"""The ways that are timed, by name: one more is one more line. The first of each kind is timed in PyTorch too."""


def read_bundles(given: Sequence[str]) -> dict[ModelKind, Bundle]:
    """Return the bundles that KIND=DIR texts name; raise if one is of another kind than it is said to be."""
    bundles: dict[ModelKind, Bundle] = {}
    for text in given:
        name, _, folder = text.partition("=")
        if not folder:
            raise OptionError(f"a bundle is given as KIND=DIR, such as treepiece=DIR, got {text!r}")
        kind = one_of("the kind of a bundle", name, ModelKind)
        if kind in bundles:
            raise OptionError(f"{text}: there is a bundle for {kind} already, {bundles[kind].folder}: give one of each")
        bundle = open_bundle(folder)
        if bundle.kind != kind:
            raise BundleError(
                f"{folder}: a bundle with a model of kind {bundle.kind!r}, expected {kind.value!r}: "
                f"give one that `treepiece train --model {kind}` has trained, or say {bundle.kind}={folder}"
            )
        bundles[kind] = bundle
    return bundles


class FreeParser:
    """The parser of a bundle, made to decode in one way."""

    def __init__(self, parser: Parser, decoding: Decoding) -> None:
        self.parser = parser
        self._model = cast(AnyRuntime, parser.model)
        decoding.set_up(self._model)
        parser.model = _Decoder(self._model, decoding.parse)

    def count(self, texts: Sequence[str]) -> dict[str, object]:
        """Return how many passes of a decoder each text took, and how often each graph ran for a text, on average.

        A pass is a run that looks at the utterance, with all of a beam at once. The first run of TreePiece, where it is
        all of the parse, is two: units and spans.
        """
        graphs = self._model.graphs
        counted = self._model.graphs = CountedGraphs(graphs)
        passes, total = [], Counter[str]()
        for text in texts:
            counted.counts.clear()
            answer = self.parser(text).best
            looks = sum(count for name, count in counted.counts.items() if name not in _BLIND)
            passes.append(max(looks, answer.passes))
            total.update(counted.counts)
        self._model.graphs = graphs
        runs = {name: count / len(texts) for name, count in sorted(total.items())}
        return {"passes": summarise(np.array(passes)), "runs": runs}


class _Decoder:
    """A model that decodes in one way, whatever its parser asks for."""

    def __init__(self, model: RuntimeModel, options: Mapping[str, int]) -> None:
        self.graphs = model.graphs
        self._model = model
        self._options = options

    def parse(self, ids: npt.NDArray[np.int64], *, beam: int = 1) -> list[list[Parse]]:
        """Return the parses of each utterance."""
        return self._model.parse(ids, **self._options)


class CountedGraphs(Graphs):
    """Graphs that count how often each of them runs."""

    def __init__(self, graphs: Graphs) -> None:
        self.__dict__.update(vars(graphs))
        self.counts: Counter[str] = Counter()

    def run(self, name: str, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs of a graph."""
        self.counts[name] += 1
        return super().run(name, inputs)


def load_parsers(kind: ModelKind, bundle: Bundle, precision: Precision) -> dict[str, FreeParser]:
    """Return a parser for each way in which a bundle can decode; none shares what it keeps with another."""
    parsers = {}
    for name, decoding in DECODINGS[kind].items():
        parser = Parser.load(bundle.folder, precision=precision, threads=THREADS)
        if decoding.fits(parser.model):
            parsers[name] = FreeParser(parser, decoding)
    return parsers


def runtime_runs(parsers: Mapping[str, FreeParser], texts: Sequence[str]) -> dict[str, Run]:
    """Return how to run parsers of one bundle, and its encoder alone, on ONNX Runtime."""

    def run(parser: Parser) -> Run:
        return lambda item: parser(texts[item])

    first, *_ = parsers.values()
    return {
        ENCODER: runtime_encoder(first.parser, texts),
        **{name: run(free.parser) for name, free in parsers.items()},
    }


def torch_runs(kind: ModelKind, bundle: Bundle, texts: Sequence[str]) -> dict[str, Run]:
    """Return how to run the weights of a bundle, and its encoder alone, in eager PyTorch; nothing if it has none."""
    if WEIGHTS not in bundle.files:
        return {}
    trained = load_model(bundle.folder)
    trained.model.to("cpu")
    (name, decoding), *_ = DECODINGS[kind].items()
    decoding.set_up(trained.model)
    return {ENCODER: torch_encoder(trained, texts), name: lambda item: trained.parse([texts[item]])}
