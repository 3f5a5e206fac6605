"""The log: one JSON object per line on standard error, without the texts of users.

The library's messages quote texts, so the log has only the type of an error and its position in the code, and names
only the server's own paths.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TextIO

LOGGER = logging.getLogger("treepiece.serving")
_OTHERS = ("uvicorn", "uvicorn.error", "asyncio")
"""Loggers whose messages go to the same log."""
_FRAMES = 12


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        value: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage() if record.name == LOGGER.name else record.name,
        }
        if record.name != LOGGER.name:
            value["message"] = record.getMessage().strip()
        value |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            value |= describe_error(record.exc_info[1])
        return json.dumps(value)


def describe_error(error: BaseException) -> dict[str, object]:
    """Return the position of an error in the code, without its message, which may quote a user."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return {"error": type(error).__name__, "at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]}


def log(event: str, fields: Mapping[str, object], *, level: int = logging.INFO) -> None:
    """Write an event to the log."""
    if LOGGER.isEnabledFor(level):
        # Not `LOGGER.log`, which walks the stack to find its caller at every request.
        LOGGER.handle(LOGGER.makeRecord(LOGGER.name, level, "", 0, event, (), None, extra={"fields": fields}))


def log_to(stream: TextIO) -> None:
    """Write the log, and uvicorn's warnings, to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    for name, level in ((LOGGER.name, logging.INFO), *((name, logging.WARNING) for name in _OTHERS)):
        logger = logging.getLogger(name)
        logger.handlers = [] if name == "uvicorn.error" else [handler]  # its messages propagate to `uvicorn`
        logger.propagate = name == "uvicorn.error"
        logger.setLevel(level)
