"""The figure of EM: the probability of every unit, iteration by iteration, and the objective that rises with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tools.docs.canvas import BLUE, GREY, ORANGE, Canvas
from tools.docs.example import toy_skeletons
from treepiece.tokenizer.corpus import Corpus
from treepiece.tokenizer.em import CorpusLattice, EmConfig, EmMethod, fit_units
from treepiece.tokenizer.learning import match_corpus
from treepiece.tokenizer.matcher import Matcher
from treepiece.tokenizer.merges import BaseVocabulary, learn_merges

_MERGES, _ITERATIONS = 100, 8
_LOWEST = -7.0
_TOP, _BOTTOM = 64, 330
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Scale = Callable[[float], float]


def draw() -> str:
    """Return the figure."""
    corpus = Corpus.collect(toy_skeletons())
    base = learn_merges(corpus, _MERGES)
    problem = match_corpus(corpus, Matcher(base.shapes, cut_anywhere=True))
    history, exact = _run(problem, base, EmMethod.EXACT)
    _, hard = _run(problem, base, EmMethod.VITERBI)
    n_trees = sum(corpus.counts)
    canvas = Canvas()
    _draw_units(canvas, history, base)
    _draw_objectives(canvas, [value / n_trees for value in exact], [value / n_trees for value in hard])
    return canvas.finish("EM: the probabilities of units, and the objective", 800, _BOTTOM + 66)


def _run(
    problem: CorpusLattice, base: BaseVocabulary, method: EmMethod
) -> tuple[list[np.typing.NDArray[np.float64]], Sequence[float]]:
    """Return the log-probabilities after each iteration, and the objective before each."""
    counts = np.array(base.counts, float)
    is_label = np.arange(len(counts)) < base.n_labels
    history = [np.log(counts / counts.sum())]
    for n_iterations in range(1, _ITERATIONS + 1):
        fit = fit_units(problem, counts, is_label, EmConfig(method, n_iterations, 0.0), np.random.default_rng(0))
        history.append(fit.log_p)
    return history, fit.objectives


def _draw_units(canvas: Canvas, history: Sequence[np.typing.NDArray[np.float64]], base: BaseVocabulary) -> None:
    left, right = 76.0, 424.0
    floor = math.log10(0.1 / sum(base.counts))
    tens = np.maximum(np.array(history) / math.log(10), _LOWEST - 1)

    def x(step: float) -> float:
        return left + step * (right - left) / _ITERATIONS

    def y(value: float) -> float:
        return _TOP + (0.0 - value) / (0.0 - _LOWEST) * (_BOTTOM - _TOP)

    is_lost = tens[-1] < floor + 0.01
    canvas.text(28, 32, "Probability of each unit (exact EM, toy grammar)", bold=True)
    for power in range(0, int(_LOWEST) - 1, -1):
        canvas.line([(left, y(power)), (right, y(power))], opacity=0.25)
        canvas.text(
            left - 8,
            y(power) + 4,
            f"10{str(power).translate(_RAISED)}" if power else "1",
            anchor="end",
            colour=GREY,
            size=11,
        )
    for column, lost in sorted(enumerate(is_lost.tolist()), key=lambda item: item[1]):
        points = [(x(step), y(max(value, _LOWEST))) for step, value in enumerate(tens[:, column].tolist())]
        end = next((step for step, value in enumerate(tens[:, column].tolist()) if value < _LOWEST), len(points))
        canvas.line(points[: end + 1], colour=ORANGE if lost else BLUE, width=1.2, opacity=0.75 if lost else 0.3)
    canvas.line([(left, y(floor)), (right, y(floor))], dashed=True, colour=GREY)
    canvas.text(right - 4, y(floor) + 15, "floor of single labels", anchor="end", colour=GREY, size=11)
    n_lost = int(is_lost.sum())
    canvas.text(left + 96, _TOP + 12, f"{len(is_lost) - n_lost} units that are used", colour=BLUE)
    canvas.text(left + 96, _TOP + 30, f"{n_lost} at the floor or below it", colour=ORANGE)
    _steps(canvas, x, left, right)


def _draw_objectives(canvas: Canvas, exact: Sequence[float], hard: Sequence[float]) -> None:
    left, right = 524.0, 764.0
    low = math.floor(min(*exact, *hard) * 4) / 4
    high = math.ceil(max(*exact, *hard) * 4) / 4

    def x(step: float) -> float:
        return left + step * (right - left) / _ITERATIONS

    def y(value: float) -> float:
        return _BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP)

    canvas.text(476, 32, "Objective: mean log P of a tree", bold=True)
    for number in range(round((high - low) * 4) + 1):
        value = low + number / 4
        canvas.line([(left, y(value)), (right, y(value))], opacity=0.25)
        canvas.text(left - 8, y(value) + 4, f"{value:.2f}", anchor="end", colour=GREY, size=11)
    for values, colour, name, where in ((exact, BLUE, "exact EM", -14), (hard, ORANGE, "hard EM", 26)):
        points = [(x(step), y(value)) for step, value in enumerate(values)]
        canvas.line(points, colour=colour, width=2)
        for point in points:
            canvas.dot(*point, colour)
        canvas.text(points[-1][0] + 4, points[-1][1] + where, name, anchor="middle", colour=colour, bold=True)
    _steps(canvas, x, left, right)


def _steps(canvas: Canvas, x: Scale, left: float, right: float) -> None:
    for step in range(_ITERATIONS + 1):
        canvas.text(x(step), _BOTTOM + 20, str(step), anchor="middle", colour=GREY, size=11)
    canvas.text((left + right) / 2, _BOTTOM + 42, "iterations", anchor="middle", colour=GREY, size=12)
