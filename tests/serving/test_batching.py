"""The queue: whatever comes when, each item is answered as if it came alone, and no more wait than may."""

import asyncio
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_tools import LONGEST, until

from treepiece.serving.batching import LANES, Batcher, QueueFullError


def double(key, items):
    return [(key, 2 * item) for item in items]


class Gate:
    """Work that waits at a gate, and notes what it got."""

    def __init__(self):
        self.go = threading.Event()
        self.batches = []

    def __call__(self, key, items):
        assert self.go.wait(LONGEST)
        self.batches.append((key, list(items)))
        return double(key, items)


def run(coroutine):
    return asyncio.run(coroutine)


def submit(batcher, key, items):
    return batcher.submit(key, items, [1] * len(items))


@settings(max_examples=60)
@given(
    orders=st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 99), max_size=7)), max_size=12),
    size=st.integers(1, 5),
    wait=st.sampled_from([0.0, 0.001]),
    pauses=st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_each_is_answered_as_if_it_came_alone(orders, size, wait, pauses):
    seen = []

    def work(key, items):
        seen.append(len(items))
        return double(key, items)

    async def main():
        batcher = Batcher(work, size=size, wait=wait, bound=100)
        futures = []
        for (key, items), pause in zip(orders, pauses, strict=False):
            futures.append(submit(batcher, key, items))
            if pause:
                await asyncio.sleep(0)
        answers = await asyncio.gather(*futures)
        assert batcher.waiting == 0
        batcher.close()
        return answers

    assert run(main()) == [double(key, items) for key, items in orders]
    assert sum(seen) == sum(len(items) for _, items in orders)
    assert all(1 <= n <= size for n in seen)


@settings(max_examples=40)
@given(
    steps=st.lists(st.tuples(st.sampled_from(["submit", "cancel", "run"]), st.integers(0, 6)), max_size=25),
    bound=st.integers(6, 10),
)
def test_no_more_wait_than_may(steps, bound):
    async def main():
        gate = Gate()
        batcher = Batcher(gate, size=2, wait=0.0, bound=bound)
        futures = []
        for what, n in steps:
            if what == "submit":
                before = batcher.waiting
                try:
                    futures.append((n, submit(batcher, "a", list(range(n)))))
                except QueueFullError:
                    assert before + n > bound
                    assert batcher.waiting == before
            elif what == "cancel" and futures:
                futures[n % len(futures)][1].cancel()
                await asyncio.sleep(0)
            else:
                await asyncio.sleep(0.0001)
            assert 0 <= batcher.waiting <= bound
        gate.go.set()
        for n, future in futures:
            if not future.cancelled():
                assert await future == double("a", list(range(n)))
        await until(lambda: batcher._under_way == 0)
        assert batcher.waiting == 0
        batcher.close()

    run(main())


def test_what_comes_while_work_is_done_is_taken_together():
    async def main():
        gate = Gate()
        batcher = Batcher(gate, size=8, wait=0.0, bound=100)
        first = [submit(batcher, "a", [n]) for n in range(LANES)]
        rest = [submit(batcher, "a", [n]) for n in range(LANES, 20)]
        assert batcher.waiting == 20 - LANES
        gate.go.set()
        await asyncio.gather(*first, *rest)
        assert sorted(len(items) for _, items in gate.batches) == [1] * LANES + [2, 8, 8]
        batcher.close()

    run(main())


def test_an_item_waits_for_company():
    async def main():
        sizes = []
        batcher = Batcher(double, size=3, wait=LONGEST, bound=10, observe=lambda n, _: sizes.append(n))
        await asyncio.gather(*[submit(batcher, "a", [n]) for n in range(3)])  # at once, or this takes a minute
        assert sizes == [3]
        batcher.close()

    run(main())


@settings(max_examples=40)
@given(
    orders=st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=4), min_size=1, max_size=8),
    size=st.integers(1, 10),
)
def test_a_batch_weighs_no_more_than_it_may_unless_it_is_a_single_item(orders, size):
    batches = []

    async def main():
        gate = Gate()
        batcher = Batcher(gate, size=size, wait=0.0, bound=1000)
        take = batcher._take
        batcher._take = lambda: batches.append(take()) or batches[-1]
        futures = [batcher.submit("a", list(range(len(weights))), weights) for weights in orders]
        assert batcher.unanswered == sum(map(sum, orders))
        gate.go.set()
        await asyncio.gather(*futures)
        await until(lambda: batcher._under_way == 0)
        assert (batcher.waiting, batcher.unanswered) == (0, 0)
        batcher.close()

    run(main())
    for batch in batches:
        assert len(batch) == 1 or sum(order.weights[place] for order, place in batch) <= size


def test_who_goes_away_gives_the_place_back():
    async def main():
        gate = Gate()
        batcher = Batcher(gate, size=1, wait=0.0, bound=4)
        busy = [submit(batcher, "a", [n]) for n in range(LANES)]
        waiting = submit(batcher, "a", [7, 8, 9, 10])
        with pytest.raises(QueueFullError):
            submit(batcher, "a", [11])
        waiting.cancel()
        await asyncio.sleep(0)
        assert batcher.waiting == 0
        last = submit(batcher, "a", [11])
        gate.go.set()
        await asyncio.gather(*busy, last)
        assert sorted(items[0] for _, items in gate.batches) == [*range(LANES), 11]
        batcher.close()

    run(main())


def test_one_that_fails_fails_alone():
    def work(key, items):
        if 3 in items:
            raise ZeroDivisionError
        return double(key, items)

    async def main():
        batcher = Batcher(work, size=10, wait=0.0, bound=10)
        answers = await submit(batcher, "a", [1, 2, 3, 4])
        assert [answers[0], answers[1], answers[3]] == double("a", [1, 2, 4])
        assert isinstance(answers[2], ZeroDivisionError)
        assert await submit(batcher, "a", [5]) == double("a", [5])
        batcher.close()

    run(main())


@pytest.mark.parametrize("fault", ["work", "threads", "observe"])
def test_a_fault_around_the_work_leaves_nobody_waiting(fault, caplog):
    async def main():
        batcher = Batcher(double, size=2, wait=0.0, bound=20)

        def fail(*_):
            raise RuntimeError("no more threads")

        place, name = {
            "work": (batcher, "_run"),
            "threads": (batcher._threads, "submit"),
            "observe": (batcher, "observe"),
        }[fault]
        whole = getattr(place, name)
        setattr(place, name, fail)
        futures = [submit(batcher, "a", [1, 2, 3]), submit(batcher, "b", [4])]
        async with asyncio.timeout(LONGEST):
            found = await asyncio.gather(*futures, return_exceptions=True)
        await until(lambda: batcher._under_way == 0)
        assert (batcher.waiting, batcher.unanswered) == (0, 0)
        setattr(place, name, whole)
        assert await submit(batcher, "a", [5]) == double("a", [5])
        batcher.close()
        return found

    found = run(main())
    if fault == "observe":  # the answers were there
        assert found == [double("a", [1, 2, 3]), double("b", [4])]
    else:
        assert [str(error) for error in found] == ["a batch ended in RuntimeError"] * 2
    assert "no more threads" in caplog.text


def test_the_event_loop_goes_on_while_work_is_done():
    async def main():
        gate = Gate()
        batcher = Batcher(gate, size=1, wait=0.0, bound=10)
        future = submit(batcher, "a", [1])
        for _ in range(10):
            await asyncio.sleep(0)
            assert not future.done()
        gate.go.set()
        assert await future == double("a", [1])
        batcher.close()

    run(main())
