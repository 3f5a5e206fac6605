"""The prefixes that tell intents and slots from words in TOP text."""

INTENT_PREFIX = "IN:"
SLOT_PREFIX = "SL:"
TOP_PREFIXES = (INTENT_PREFIX, SLOT_PREFIX)


def is_slot(label: str) -> bool:
    """Return whether `label` names a slot.

    >>> is_slot("SL:TODO"), is_slot("IN:CREATE_REMINDER")
    (True, False)
    """
    return label.startswith(SLOT_PREFIX)
