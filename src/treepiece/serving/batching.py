"""A bounded queue that forms batches.

Requests arrive one by one, but a parser is faster on batches. An item waits until a batch is full or `wait` seconds
have passed, or longer while the parser is busy. Two batches are in progress at a time, so that one is computed while
the answers of the other are sent.

Items have weights, in proportion to their work. The weight of a batch is bounded, and so is that of all waiting items.

Batches never change an answer: if the work fails for a batch, it is repeated item by item, and only items that fail
alone get the error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from time import monotonic, perf_counter
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")

LANES = 2
"""The number of batches in progress at a time."""


class QueueFullError(Exception):
    """The queue has no room for the items; none was accepted."""


@dataclass(eq=False, slots=True)
class _Order(Generic[Key, Item, Answer]):
    """Items of one request: they are answered together, but may be in different batches."""

    key: Key
    items: Sequence[Item]
    weights: Sequence[int]
    future: asyncio.Future[list[Answer | Exception]]
    arrived: float = field(default_factory=monotonic)
    taken: int = 0
    answers: dict[int, Answer | Exception] = field(default_factory=dict)


_Batch = list[tuple[_Order[Key, Item, Answer], int]]
"""Items, each as its order and its index there."""
_Answers = tuple[list[Answer | Exception], float]
"""The answers to a batch, and the seconds that they took."""


@dataclass(eq=False)
class Batcher(Generic[Key, Item, Answer]):
    """Computes items in batches, in threads. All methods are for the thread of the event loop.

    `work` gets items with the same key, and returns one answer per item. `size` is the maximum weight of a batch (a
    single item may exceed it), and `bound` that of the waiting items. `observe` receives the number of items of each
    batch and its seconds.
    """

    work: Callable[[Key, Sequence[Item]], Sequence[Answer]]
    _: KW_ONLY
    size: int
    wait: float
    bound: int
    observe: Callable[[int, float], None] = lambda n_items, seconds: None

    def __post_init__(self) -> None:
        self.waiting = 0
        """The weight of waiting items; never more than the bound."""
        self._orders: dict[_Order[Key, Item, Answer], None] = {}  # a dict, for removal in constant time
        self._computed = 0  # the weight of items that are being computed
        self._under_way = 0  # batches in progress
        self._timer: asyncio.TimerHandle | None = None
        self._threads = ThreadPoolExecutor(LANES, "treepiece-batch")

    @property
    def unanswered(self) -> int:
        """The weight of items that wait or are being computed."""
        return self.waiting + self._computed

    def submit(
        self, key: Key, items: Sequence[Item], weights: Sequence[int]
    ) -> asyncio.Future[list[Answer | Exception]]:
        """Return a future with the answer or the exception of each item; raise if the queue is full.

        Cancelling the future, or setting an exception, frees the place in the queue at once.
        """
        if self.waiting + sum(weights) > self.bound:
            raise QueueFullError
        future: asyncio.Future[list[Answer | Exception]] = asyncio.get_running_loop().create_future()
        if not items:
            future.set_result([])
            return future
        order = _Order(key, items, weights, future)
        self._orders[order] = None
        self.waiting += sum(weights)
        future.add_done_callback(lambda _: self._drop(order))
        self._start()
        return future

    def close(self) -> None:
        """Stop the threads; nothing may be submitted afterwards."""
        self._threads.shutdown(wait=False)

    def _drop(self, order: _Order[Key, Item, Answer]) -> None:
        """Remove the items of an order that still wait."""
        if order in self._orders:
            del self._orders[order]
            self.waiting -= sum(order.weights[order.taken :])

    def _start(self) -> None:
        """Start the batches that are due, and schedule the next check."""
        loop = asyncio.get_running_loop()
        while self._orders and self._under_way < LANES:
            due = next(iter(self._orders)).arrived + self.wait
            if self.waiting < self.size and (left := due - monotonic()) > 0:
                self._timer = self._timer or loop.call_later(left, self._on_timer)
                return
            self._under_way += 1
            batch = self._take()
            self._computed += _weight(batch)
            try:
                answers = loop.run_in_executor(self._threads, self._run, batch)
            except RuntimeError as error:  # no thread could be started: the clients must get the error
                answers = loop.create_future()
                answers.set_exception(error)
            answers.add_done_callback(partial(self._finish, batch))

    def _on_timer(self) -> None:
        self._timer = None
        self._start()

    def _take(self) -> _Batch[Key, Item, Answer]:
        """Return the items that have waited longest."""
        batch: _Batch[Key, Item, Answer] = []
        room = self.size
        while self._orders:
            order = next(iter(self._orders))
            weight = order.weights[order.taken]
            if batch and weight > room:
                break
            batch.append((order, order.taken))
            order.taken += 1
            room -= weight
            self.waiting -= weight
            if order.taken == len(order.items):
                del self._orders[order]
        return batch

    def _run(self, batch: _Batch[Key, Item, Answer]) -> _Answers[Answer]:
        """Return the answers to a batch; this runs in a thread."""
        begin = perf_counter()
        groups: dict[Key, list[int]] = {}
        for number, (order, _) in enumerate(batch):
            groups.setdefault(order.key, []).append(number)
        answers: dict[int, Answer | Exception] = {}
        for key, numbers in groups.items():
            items = [batch[number][0].items[batch[number][1]] for number in numbers]
            answers |= zip(numbers, self._try(key, items), strict=True)
        return [answers[number] for number in range(len(batch))], perf_counter() - begin

    def _try(self, key: Key, items: Sequence[Item]) -> list[Answer | Exception]:
        try:
            return list(self.work(key, items))
        except Exception as error:  # an error of one item must not affect the answers of others
            if len(items) == 1:
                return [error]
            return [answer for item in items for answer in self._try(key, [item])]

    def _finish(self, batch: _Batch[Key, Item, Answer], done: asyncio.Future[_Answers[Answer]]) -> None:
        """Set the answers of a batch, or an exception for all its items, and start the next batch."""
        self._under_way -= 1
        self._computed -= _weight(batch)
        try:
            answers, seconds = done.result()
            for (order, place), answer in zip(batch, answers, strict=True):
                order.answers[place] = answer
                if len(order.answers) == len(order.items) and not order.future.done():
                    order.future.set_result([order.answers[number] for number in range(len(order.items))])
        except (Exception, asyncio.CancelledError) as error:
            # `_try` handles work that fails: this is a fault around it, such as a thread that cannot be started.
            fault = RuntimeError(f"a batch ended in {type(error).__name__}")
            for order, _ in batch:
                if not order.future.done():
                    order.future.set_exception(fault)
            raise
        else:
            self.observe(len(batch), seconds)
        finally:
            self._start()


def _weight(batch: _Batch[Key, Item, Answer]) -> int:
    return sum(order.weights[place] for order, place in batch)
