"""Metrics for Prometheus, in a registry per server, so that two servers in one process do not mix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The format that every version of Prometheus reads."""
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters and histograms; `description` is that of the model."""

    def __init__(
        self,
        description: Mapping[str, object],
        *,
        waiting: Callable[[], float],
        bound: int,
        under_way: Callable[[], float],
    ) -> None:
        self._registry = registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._requests = counter("treepiece_requests", "Requests that were answered.", ["path", "method", "status"])
        self._seconds = histogram(
            "treepiece_request_seconds", "From the head of a request to its answer.", ["path"], buckets=_SECONDS
        )
        self._problems = counter("treepiece_problems", "Requests that ended in a problem.", ["type"])
        self._texts = counter("treepiece_texts", "Texts and trees, by outcome.", ["outcome"])
        self._batch = histogram("treepiece_batch_size", "Texts that were parsed together.", buckets=_SIZES)
        self._batch_seconds = histogram("treepiece_batch_seconds", "The seconds of a batch.", buckets=_SECONDS)
        gauge("treepiece_requests_under_way", "Requests without an answer yet.").set_function(under_way)
        gauge("treepiece_queue_length", "Waiting candidates.").set_function(waiting)
        gauge("treepiece_queue_limit", "The maximum number of waiting candidates.").set(bound)
        names = ("name", "kind", "version", "precision", "treepiece")
        Info("treepiece_model", "The model that is served.", registry=registry).info(
            {name: str(description[name]) for name in names}
        )
        ProcessCollector(registry=registry)
        # Looking up a label takes longer than counting, and there are few.
        self._requests_of = cache(self._requests.labels)
        self._seconds_of = cache(self._seconds.labels)
        self._texts_of = cache(self._texts.labels)

    def on_request(self, path: str, method: str, status: int, seconds: float) -> None:
        """Count a request; `path` and `method` must have few distinct values, because each takes memory."""
        self._requests_of(path, method, status).inc()
        self._seconds_of(path).observe(seconds)

    def on_problem(self, slug: str) -> None:
        """Count a request that ended in a problem."""
        self._problems.labels(slug).inc()

    def on_text(self, outcome: str) -> None:
        """Count a text by its outcome."""
        self._texts_of(outcome).inc()

    def on_batch(self, n_texts: int, seconds: float) -> None:
        """Count a batch."""
        self._batch.observe(n_texts)
        self._batch_seconds.observe(seconds)

    def write(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)
