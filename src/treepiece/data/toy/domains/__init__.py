"""The phrases of the toy grammar: one file a domain, and one for what they share."""

from collections.abc import Mapping

from treepiece.data.toy.domains import home, messaging, music, navigation, reminder, shared, timer, weather

DOMAIN_WEIGHTS: Mapping[str, int] = {
    "home": 3,
    "messaging": 5,
    "music": 4,
    "navigation": 4,
    "reminder": 6,
    "timer": 3,
    "weather": 4,
}
"""How often each domain comes up. A domain has the name of the phrase that its rows expand."""

PHRASES: Mapping[str, str] = (
    shared.PHRASES
    | home.PHRASES
    | messaging.PHRASES
    | music.PHRASES
    | navigation.PHRASES
    | reminder.PHRASES
    | timer.PHRASES
    | weather.PHRASES
)
