"""Phrases that several domains use: ways to ask, times, people and places.

Some words are in several lists on purpose (`paris` and `sydney` are cities and people, `five minutes` is a duration or,
after `in`, a time): only the words around them tell which slot they fill. What makes every label certain is that all
domains keep to the same conventions: `at`, `on`, `in`, `after` and `before` belong to the words of a time, `for` and
`to` do not; a slot with a nested intent holds nothing else; a person called `my ...` is a nested intent; a time to
come at the end of a request belongs to the outermost intent; nothing but politeness follows the content of a message.
"""

PHRASES = {
    # Ways to ask: around a command, around a question, around a statement.
    "asked": """
        8: {}
        2: please {}
        2: can you {} ~?
        can you {}
        could you please {} ~?
        hey ~, {}
        ok ~, now {}
        2: {} please
        {} ~, thanks
        i would like you to {}
    """,
    "question": """
        4: {}
        5: {} ~?
        hey ~, {} ~?
        quick question ~, {} ~?
    """,
    "said": "5: {} | {} please | hey ~, {} | {} ~, thanks | {} ~!",
    # Times. A time to come, as an adverb ("when") and as a noun ("date": for friday, to friday); a time gone by.
    "when": """
        5: {day}
        2: on {weekday}
        next {weekday}
        3: at {clock}
        2: {near_day} at {clock}
        on {weekday} at {clock}
        3: in {duration}
        {around}
    """,
    "date": "3: {day} | 2: {weekday} | 2: {clock} | {near_day} at {clock} | {weekday} at {clock} | next {weekday}",
    "some_day": "4: {day} | 3: on {weekday} | next {weekday}",
    "past": "2: yesterday | last night | this morning | last week | on {weekday} | last {weekday} | earlier today",
    "day": """
        today | 3: tonight | 3: tomorrow | tomorrow morning | tomorrow night | this afternoon | this evening
        this weekend | next week | later today | tomorrow evening | the day after tomorrow
    """,
    "near_day": "2: tomorrow | today | the day after tomorrow",
    "around": "after work | before dinner | after lunch | before bed | after class | before noon",
    "weekday": "monday | tuesday | wednesday | thursday | friday | saturday | sunday",
    "clock": """
        7 pm | 8 am | 9 pm | 6 am | 10 am | 5 pm | 7:30 | 8:15 | 6:45 pm | 9:30 am | noon | midnight | 3:20 pm
        half past six | quarter to nine | 11 am
    """,
    "duration": """
        3: five minutes | 2: ten minutes | 20 minutes | 45 minutes | 90 seconds | half an hour | 2: an hour | two hours
        three hours | a few minutes | 15 minutes | an hour and a half
    """,
    "often": "3: {daily} | 2: every {interval} | every morning | every night | once a week | twice a day",
    "daily": "2: every day | 2: every {weekday} | on weekdays | every other day",
    "interval": "five minutes | ten minutes | 20 minutes | two hours | three hours",
    # People.
    "name": """
        2: paris | 2: sydney | 2: austin | 2: june | anna | ben | carlos | deepa | emil | fatima | grace | hugo | ines
        jamal | kenji | lucia | mom | dad | nora | omar | priya | mr patel | dr lee | aunt rosa | uncle theo
    """,
    "group": "the kids | the team | grandma | the neighbors | the babysitter | the whole band",
    "relation": """
        mom | dad | sister | brother | wife | husband | boss | manager | landlord | neighbor | roommate | cousin
        dentist | coach | lawyer | teacher | daughter | son
    """,
    "relative": "[IN:GET_CONTACT my [SL:TYPE_RELATION {relation} ] ]",
    "contact": "2: {contact_named} | [SL:CONTACT {relative} ]",
    "contact_named": "[SL:CONTACT {name} ]",
    # Places.
    "city": """
        3: paris | 2: sydney | 2: austin | berlin | oslo | lima | nairobi | new york | san diego | tokyo | dublin
        cape town | toronto | mumbai | athens | seattle
    """,
    "far_city": "geneva | porto | denver | boston | madrid | hong kong",
    # Events, as a nested intent: whoever goes there or is reminded of it names it.
    "event": """
        [IN:GET_EVENT the {event_name} ]
        2: [IN:GET_EVENT the {event_name} with [SL:ATTENDEE {name} ] ]
        2: [IN:GET_EVENT the {event_name} with [SL:ATTENDEE {relative} ] ]
    """,
    "event_name": "[SL:EVENT_NAME {gathering} ]",
    "gathering": """
        dinner | lunch | picnic | meeting | interview | concert | book club | barbecue | game night | birthday party
        wedding | study group
    """,
}
