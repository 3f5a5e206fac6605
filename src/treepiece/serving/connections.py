"""Connections: what a server must see to before there is a request, and after it.

uvicorn leaves some things open that clients can hold against a server. It waits for the head of a request, and for
somebody to read an answer, for as long as it takes; it takes any number of connections; and it says some errors in
plain text. When it stops, it closes connections that have no request at that moment, even if one is on its way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

import h11
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from treepiece.serving.headers import with_security
from treepiece.serving.limits import RETRY_AFTER
from treepiece.serving.problems import MEDIA_TYPE, ProblemType
from treepiece.serving.settings import Settings

LINGER = 0.5
"""How many seconds a connection without a request is kept when the server stops, for a request that is on its way, and
one that was refused, for the client to see it."""
MOST_LINGERING = 64
"""How many connections that were refused are kept for that at a time."""


def connection_class(settings: Settings, on_refusal: Callable[[ProblemType, Scope | None], str]) -> type[H11Protocol]:
    """Return the protocol with which uvicorn talks to clients.

    `on_refusal` is told what it refuses by itself, and the request that was under way, and returns a name for it.
    """

    class Connection(_Connection):
        patience = settings.head_seconds
        reading_patience = settings.answer_seconds
        most = settings.connections
        name_refusal = staticmethod(on_refusal)
        _lingering: set[_Connection] = set()  # noqa: RUF012  # that is what they share

    return Connection


class _Joined(asyncio.Transport):
    """A transport that sends what is written in one go together: head and body of an answer are one packet.

    When it is closed, a client has `patience` seconds to read what is left.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, patience: float) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._patience = patience
        self._parts: list[bytes] = []
        self._has_ended = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(bytes(data))

    def _flush(self) -> None:
        if self._parts:
            self._transport.write(b"".join(self._parts))
            self._parts.clear()

    def close(self) -> None:
        self._flush()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self._loop.call_later(self._patience, self._transport.abort)

    def abort(self) -> None:
        self._transport.abort()

    def end(self) -> None:
        """Close as soon as the client has done so, or after a while.

        A socket that is closed while bytes of the client are unread resets the connection, and a client that is still
        sending may then never see the answer.
        """
        self._flush()
        self._has_ended = True
        self._transport.write_eof()
        self._loop.call_later(LINGER, self.close)

    def is_closing(self) -> bool:
        return self._has_ended or self._transport.is_closing()

    def resume_reading(self) -> None:
        self._transport.resume_reading()


class _Connection(H11Protocol):
    """One connection. Its timer runs while the client owes something that nobody else waits for."""

    patience: float
    reading_patience: float
    most: int
    name_refusal: Callable[[ProblemType, Scope | None], str]
    _lingering: set[_Connection]

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # uvicorn's own, handed on as they are
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None

    @property
    def _is_answering(self) -> bool:
        """Whether there is a request that has no answer yet; who answers it has time limits of its own."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = _Joined(transport, self.loop, self.reading_patience)
        if len(self.connections) > self.most:
            self._refuse(ProblemType.TOO_MANY, f"there are {self.most:,} connections already", RETRY_AFTER)
        else:
            self._set_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lingering.discard(self)
        self._stop_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._is_answering:
            self._stop_timer()
        else:  # part of a head, or a body that was refused: uvicorn has no time limit for either
            self._set_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_answering and (self.conn.their_state is h11.SEND_BODY or self.conn.trailing_data[0]):
            self._set_timer()  # a body that nobody read, or the next head, has begun already

    def pause_writing(self) -> None:
        """Stop answering for a while: the client does not read; if it does not begin to, it is not waited for."""
        super().pause_writing()
        self._reading_timer = self.loop.call_later(self.reading_patience, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on answering: the client reads."""
        super().resume_writing()
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None

    def shutdown(self) -> None:
        """Begin to stop."""
        if self._is_answering:
            super().shutdown()
        else:
            self.loop.call_later(LINGER, self._close_if_idle)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(ProblemType.BROKEN_REQUEST, "the request is not HTTP/1.1, or its head is too large")

    def _close_if_idle(self) -> None:
        if not self._is_answering and not self.transport.is_closing():
            self.transport.close()

    def _set_timer(self) -> None:
        if self._timer is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(self.patience, self._on_timer)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        if self._is_answering or self.transport.is_closing():
            return
        detail = f"the request did not arrive within {self.patience:g} seconds"
        self._refuse(ProblemType.SLOW_REQUEST, detail)

    def _refuse(self, kind: ProblemType, detail: str, headers: Mapping[str, str] | None = None) -> None:
        """Send a problem, if nothing was sent for this request yet, and close the connection."""
        scope = cast(Scope, self.scope) if self._is_answering else None
        if self._is_answering:
            self.cycle.disconnected = True  # whoever was answering need not go on
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            name = self.name_refusal(kind, scope)
            body = kind.to_json(detail, name)
            fields = {
                "Content-Type": MEDIA_TYPE,
                "Content-Length": len(body),
                "Connection": "close",
                "X-Request-ID": name,
                **{key.decode(): value.decode() for key, value in with_security([])},
                **(headers or {}),
            }
            lines = [f"HTTP/1.1 {kind.status} {kind.title}", *(f"{key}: {value}" for key, value in fields.items())]
            self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self._end()

    def _end(self) -> None:
        """Close a connection that was refused; it does not count as one any more, even while it lingers."""
        self.connections.discard(self)
        transport = cast(_Joined, self.transport)
        if len(self._lingering) < MOST_LINGERING:
            self._lingering.add(self)
            transport.end()
        else:
            transport.close()
