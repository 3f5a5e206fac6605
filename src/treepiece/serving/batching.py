"""A bounded queue, and batches made from it.

Clients come one by one; a parser does more when it gets several texts at once. An item waits for company until there
is enough for a batch or `wait` seconds are over, and longer while the parser is busy. Two batches are under way at a
time, so that one is computed while the answers of the other are sent.

Items have weights, in proportion to the work that they are. What is bounded is the weight of what waits, and of a
batch.

Nobody can tell from an answer what it was computed with: work that fails for a batch is done again item by item, and
only those items fail that fail alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic, perf_counter
from typing import Generic, TypeVar, cast

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")

LANES = 2
"""How many batches are under way at a time."""


class QueueFullError(Exception):
    """There is no room for more items; nothing was accepted."""


class _Order(Generic[Key, Item, Answer]):
    """Items that came together: they wait together, may be computed apart, and are answered together."""

    __slots__ = ("answers", "arrived", "future", "items", "key", "missing", "taken", "weights")

    def __init__(
        self,
        key: Key,
        items: Sequence[Item],
        weights: Sequence[int],
        future: asyncio.Future[list[Answer | Exception]],
    ) -> None:
        self.key = key
        self.items = items
        self.weights = weights
        self.future = future
        self.arrived = monotonic()
        self.taken = 0
        self.missing = len(items)
        self.answers: list[Answer | Exception | None] = [None] * len(items)


class Batcher(Generic[Key, Item, Answer]):
    """Computes items in batches, in threads beside the event loop. All methods are for the thread of the loop.

    `work` gets items that have the same key, and returns as many answers. `size` is how much a batch may weigh, unless
    it is a single item, and `bound` how much may wait. `observe` is told the number of items of each batch and the
    seconds that it took.
    """

    def __init__(
        self,
        work: Callable[[Key, Sequence[Item]], Sequence[Answer]],
        *,
        size: int,
        wait: float,
        bound: int,
        observe: Callable[[int, float], None] = lambda n_items, seconds: None,
    ) -> None:
        self._work = work
        self._size = size
        self._wait = wait
        self._bound = bound
        self._observe = observe
        self._orders: dict[_Order[Key, Item, Answer], None] = {}  # a dict, to remove from anywhere at once
        self._waiting = 0
        self._computed = 0  # what is being computed
        self._under_way = 0  # batches that are
        self._timer: asyncio.TimerHandle | None = None
        self._threads = ThreadPoolExecutor(LANES, "treepiece-batch")

    @property
    def waiting(self) -> int:
        """The weight of what waits; never more than the bound."""
        return self._waiting

    @property
    def unanswered(self) -> int:
        """The weight of what waits or is being computed."""
        return self._waiting + self._computed

    def submit(
        self, key: Key, items: Sequence[Item], weights: Sequence[int]
    ) -> asyncio.Future[list[Answer | Exception]]:
        """Return what will be the answer of each item, or the exception that it ended in; raise if there is no room.

        Whoever cancels what is returned, or sets an exception, gives the place in the queue back at once.
        """
        if self._waiting + sum(weights) > self._bound:
            raise QueueFullError
        future: asyncio.Future[list[Answer | Exception]] = asyncio.get_running_loop().create_future()
        if not items:
            future.set_result([])
            return future
        order = _Order(key, items, weights, future)
        self._orders[order] = None
        self._waiting += sum(weights)
        future.add_done_callback(lambda _: self._drop(order))
        self._start()
        return future

    def close(self) -> None:
        """Let the threads end; nothing may be submitted afterwards."""
        self._threads.shutdown(wait=False)

    def _drop(self, order: _Order[Key, Item, Answer]) -> None:
        """Forget what of an order still waits."""
        if order in self._orders:
            del self._orders[order]
            self._waiting -= sum(order.weights[order.taken :])

    def _start(self) -> None:
        """Start the batches that are due; see to it that this is asked again when the next one is."""
        loop = asyncio.get_running_loop()
        while self._orders and self._under_way < LANES:
            due = next(iter(self._orders)).arrived + self._wait
            if self._waiting < self._size and (left := due - monotonic()) > 0:
                self._timer = self._timer or loop.call_later(left, self._on_timer)
                return
            self._under_way += 1
            batch = self._take()
            self._computed += _weight(batch)
            self._compute(batch).add_done_callback(partial(self._finish, batch))

    def _compute(
        self, batch: list[tuple[_Order[Key, Item, Answer], int]]
    ) -> asyncio.Future[tuple[list[Answer | Exception], float]]:
        loop = asyncio.get_running_loop()
        try:
            return loop.run_in_executor(self._threads, self._run, batch)
        except RuntimeError as error:  # the system gives no thread: whoever waits must hear of it
            failed: asyncio.Future[tuple[list[Answer | Exception], float]] = loop.create_future()
            failed.set_exception(error)
            return failed

    def _on_timer(self) -> None:
        self._timer = None
        self._start()

    def _take(self) -> list[tuple[_Order[Key, Item, Answer], int]]:
        """Return the items that have waited longest, each as its order and its place there."""
        batch: list[tuple[_Order[Key, Item, Answer], int]] = []
        room = self._size
        while self._orders:
            order = next(iter(self._orders))
            weight = order.weights[order.taken]
            if batch and weight > room:
                break
            batch.append((order, order.taken))
            order.taken += 1
            room -= weight
            self._waiting -= weight
            if order.taken == len(order.items):
                del self._orders[order]
        return batch

    def _run(self, batch: Sequence[tuple[_Order[Key, Item, Answer], int]]) -> tuple[list[Answer | Exception], float]:
        """Return the answers to a batch, and the seconds that they took; this is what runs beside the event loop."""
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
            return list(self._work(key, items))
        except Exception as error:  # whatever it is, it must not end the answers of others
            if len(items) == 1:
                return [error]
            return [answer for item in items for answer in self._try(key, [item])]

    def _finish(
        self,
        batch: Sequence[tuple[_Order[Key, Item, Answer], int]],
        done: asyncio.Future[tuple[list[Answer | Exception], float]],
    ) -> None:
        """Hand the answers of a batch out; whatever went wrong, nobody waits for ever, and the next batch starts."""
        self._under_way -= 1
        self._computed -= _weight(batch)
        try:
            answers, seconds = done.result()
            for (order, place), answer in zip(batch, answers, strict=True):
                order.answers[place] = answer
                order.missing -= 1
                if not order.missing and not order.future.done():
                    order.future.set_result(cast(list[Answer | Exception], order.answers))
        except (Exception, asyncio.CancelledError) as error:
            # Work that fails is seen to in `_try`: this is a fault around it, such as a thread that cannot be started.
            fault = RuntimeError(f"a batch ended in {type(error).__name__}")
            for order, _ in batch:
                if not order.future.done():
                    order.future.set_exception(fault)
            raise
        else:
            self._observe(len(batch), seconds)
        finally:
            self._start()


def _weight(batch: Sequence[tuple[_Order[Key, Item, Answer], int]]) -> int:
    return sum(order.weights[place] for order, place in batch)
