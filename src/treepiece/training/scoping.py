"""Fits the classifier of scope on a trained model: the encoder stays as it is.

    in_scope    training utterances                      against  requests of other domains, and gibberish
    several     two training utterances joined in one    against  all others

Both are logistic regressions with balanced classes; their convex problem is solved to the end, so the result depends on
the data alone. Afterwards the biases are shifted from balanced classes to what users type: mostly one request, and
mostly one that the parser knows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from treepiece.data.out_of_scope import Request
from treepiece.models.encoder import encode_utterances
from treepiece.models.trained import TrainedModel
from treepiece.progress import Progress
from treepiece.scope import ScopeClassifier
from treepiece.text import Subwords

T = TypeVar("T")

MAX_ROWS = 3000
"""The maximum number of texts of each kind: training utterances, joined ones, and those with words such as "and"."""
MAX_REQUESTS = 6000
"""The maximum number of requests of other domains."""
IN_SCOPE, SEVERAL = 0.9, 0.05
"""The shares that are assumed of what users type: texts in scope, and texts of several requests."""
JOINS = (" and ", " then ", " and then ", ", ", ". ", " also ", " and also ", "; ")
"""What joins two requests to one text."""
_GIBBERISH = 0.05
"""Texts of random letters for each request of another domain."""
_FOLDS = 5
_PENALTY = 1e-2
_BATCH = 64


def fit_scope(
    trained: TrainedModel,
    utterances: Sequence[str],
    others: Sequence[Request],
    *,
    seed: int,
    progress: Progress,
    is_default: bool = False,
) -> tuple[ScopeClassifier, list[str]]:
    """Return the classifier for a model, and the groups of requests that were left out.

    `utterances` are those of the training rows, `others` are out of scope. The requests that come with treepiece, the
    default, are about many things, and a parser may be trained for one of them: groups of them that look like training
    rows are left out.
    """
    rng = np.random.default_rng([seed, len(utterances), len(others)])
    others = _spread(others, MAX_REQUESTS)
    inside = _spread(utterances, MAX_ROWS)
    ambiguous = _spread([text for text in utterances if any(join in text for join in JOINS)], MAX_ROWS)
    joined = [join_texts(*_pick(inside, rng), JOINS[rng.integers(len(JOINS))]) for _ in inside]
    random = [gibberish(rng) for _ in range(math.ceil(_GIBBERISH * len(others)))]
    texts = [inside, ambiguous, joined, random, [one.text for one in others]]
    single, more, several, noise, outside = pooled_groups(trained, texts, progress)
    known = torch.cat([single, more])
    near = near_groups(known, outside, [one.group for one in others], rng) if is_default else []
    is_far = torch.tensor([one.group not in near for one in others], dtype=torch.bool)
    unknown = torch.cat([outside[is_far], noise])
    fits = [
        logistic_regression(torch.cat([known, several]), unknown, IN_SCOPE),
        logistic_regression(several, torch.cat([known, unknown]), SEVERAL),
    ]
    weights, biases = zip(*fits, strict=True)
    return ScopeClassifier(torch.stack(weights).numpy(), torch.stack(biases).numpy()), near


def near_groups(inside: Tensor, outside: Tensor, groups: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Return the groups of requests of which a regression that was fitted without them calls most in scope."""
    names = sorted(set(groups))
    fold_of = {names[place]: number % _FOLDS for number, place in enumerate(rng.permutation(len(names)).tolist())}
    folds = torch.tensor([fold_of[group] for group in groups])
    votes: dict[str, list[bool]] = defaultdict(list)
    for fold in range(min(_FOLDS, len(names))):
        rest = outside[folds != fold]
        if not len(rest):
            continue
        weights, bias = logistic_regression(inside, rest, 0.5)
        places = (folds == fold).nonzero().squeeze(1).tolist()
        for place, logit in zip(places, (outside[places].double() @ weights + bias).tolist(), strict=True):
            votes[groups[place]].append(logit > 0)
    return sorted(name for name, few in votes.items() if sum(few) > len(few) / 2)


def logistic_regression(positive: Tensor, negative: Tensor, prior: float) -> tuple[Tensor, Tensor]:
    """Return the weights and the bias that tell two groups apart, if a share `prior` of all rows is positive.

    Minimises the cross-entropy with balanced classes and a quadratic penalty on the weights of standardised features.

    Shape: (rows, features) each; weights (features,).

    >>> weights, bias = logistic_regression(torch.tensor([[1.0], [2.0]]), torch.tensor([[-1.0], [-2.0]]), 0.5)
    >>> bool(weights[0] > 1), round(abs(float(bias)), 6)
    (True, 0.0)
    """
    x = torch.cat([positive, negative]).double()
    y = torch.cat([torch.ones(len(positive)), torch.zeros(len(negative))]).double()
    share = torch.where(y > 0, 0.5 / max(1, len(positive)), 0.5 / max(1, len(negative)))
    mean, scale = x.mean(0), x.std(0, unbiased=False).clamp(min=1e-6)
    x = (x - mean) / scale
    weights, bias = torch.zeros(x.shape[1], dtype=torch.double), torch.zeros((), dtype=torch.double)
    parameters = [weights.requires_grad_(), bias.requires_grad_()]
    solver = torch.optim.LBFGS(parameters, max_iter=200, tolerance_change=1e-7, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        solver.zero_grad()
        error = nn.functional.binary_cross_entropy_with_logits(x @ weights + bias, y, weight=share, reduction="sum")
        total: Tensor = error + 0.5 * _PENALTY * weights.square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    solver.step(loss)  # type: ignore[no-untyped-call]
    folded = (weights / scale).detach()
    return folded, (bias - (mean * folded).sum() + math.log(prior / (1 - prior))).detach()


@torch.no_grad()
def pooled_groups(trained: TrainedModel, groups: Sequence[Sequence[str]], progress: Progress) -> list[Tensor]:
    """Return the pooled encoder states of groups of texts, as `scope.pool`. Shape: (texts, 3 * width) for each group.

    A text that is too long for the encoder is left out.
    """
    encoder = trained.model.encoder
    was_training = encoder.training
    encoder.eval()
    found = []
    done, total = 0, sum(map(len, groups))
    for texts in groups:
        utterances = [one for one in trained.subwords.try_batch(texts) if isinstance(one, Subwords)]
        order = sorted(range(len(utterances)), key=lambda place: len(utterances[place].ids))
        pooled = torch.zeros(len(utterances), 3 * encoder.width)
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            encoded = encode_utterances(encoder, [utterances[place] for place in places])
            states, mask = encoded.states.float(), encoded.mask.unsqueeze(2)
            mean = (states * mask).sum(1) / mask.sum(1)
            pooled[places] = torch.cat([states[:, 0], mean, states.masked_fill(~mask, -math.inf).amax(1)], 1).cpu()
            done += len(places)
            progress.update("fitting the scope", done, total)
        found.append(pooled)
    encoder.train(was_training)
    return found


def join_texts(first: str, second: str, join: str) -> str:
    """Return two requests as one text.

    >>> join_texts("Wake me at 8.", "Play jazz", " and ")
    'Wake me at 8 and play jazz'
    """
    begin = second if join.startswith(".") else second[:1].lower() + second[1:]
    return first.rstrip(" .?!") + join + begin


def gibberish(rng: np.random.Generator) -> str:
    """Return one to four words of random letters."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    sizes = rng.integers(2, 10, size=rng.integers(1, 5))
    return " ".join("".join(rng.choice(letters, size=size)) for size in sizes)


def _pick(texts: Sequence[str], rng: np.random.Generator) -> tuple[str, str]:
    first, second = rng.integers(0, len(texts), 2).tolist()
    return texts[first], texts[second]


def _spread(items: Sequence[T], n: int) -> Sequence[T]:
    """Return at most `n` items, evenly spread."""
    return [items[place * len(items) // n] for place in range(n)] if len(items) > n else items
