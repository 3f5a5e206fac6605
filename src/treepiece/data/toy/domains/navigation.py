"""The way, the time it takes, the traffic, and where things are."""

PHRASES = {
    "navigation": """
        6: [IN:GET_DIRECTIONS {asked:guide} ]
        4: [IN:GET_DIRECTIONS {question:how_to_get} ]
        4: [IN:GET_TRAVEL_TIME {question:how_long} ]
        3: [IN:GET_TRAFFIC {question:how_busy} ]
        2: [IN:GET_LOCATION {question:where_is} ]
    """,
    "guide": """
        4: {guide_verb} {destination}
        2: {guide_verb} {destination} {from_origin}
        {guide_verb} {destination} by {mode}
        {guide_verb} {destination} {from_origin} by {mode}
    """,
    "guide_verb": "3: navigate to | 2: take me to | give me directions to | 2: get directions to | show me the way to",
    "how_to_get": """
        3: how do i get to {destination}
        2: how do i get to {destination} {from_origin}
        how do i get {from_origin} to {destination_plain}
        2: what ~'s the fastest way to {destination} {by_mode?}
    """,
    "how_long": """
        3: how long does it take to get to {destination} {by_mode?}
        2: how long is the drive {from_origin} to {destination_plain}
        2: how far is {destination_plain} {from_origin?}
        2: when will i get to {destination} if i leave {leaving}
        how long to {destination} {from_origin?}
    """,
    "how_busy": """
        3: how is the traffic on {on_road} {rush?}
        2: is there traffic on the way to {destination}
        is [SL:ROAD {road} ] busy {rush?}
        are there delays on {on_road}
    """,
    "where_is": """
        2: where is {nearest}
        is there a [SL:PLACE_TYPE {shop} ] [SL:NEARNESS {nearby} ]
    """,
    "destination": """
        4: {destination_plain}
        2: [SL:DESTINATION [IN:GET_LOCATION {nearest} ] ]
        [SL:DESTINATION [IN:GET_LOCATION {contact} ~'s {dwelling} ] ]
        [SL:DESTINATION {event} ]
    """,
    "destination_plain": "[SL:DESTINATION {place} ]",
    "destination_short": "3: {destination_plain} | [SL:DESTINATION [IN:GET_LOCATION {nearest} ] ]",
    # Places to start from are no places to go to, so that nobody asks for the way from paris to paris.
    "from_origin": "from [SL:ORIGIN {far_city} ] | from [SL:ORIGIN {station} ]",
    "station": """
        home | here | downtown | the hotel | campus | the office | the ferry terminal | the east gate | gate 12
        the convention center
    """,
    "place": "{city} | {landmark}",
    "landmark": """
        the airport | the train station | city hall | the library | work | the north mall | 12 elm street | union square
        the stadium | 400 river road | the harbor | the zoo | the old mill | 7 park avenue
    """,
    "nearest": "the {near} [SL:PLACE_TYPE {shop} ]",
    "near": "2: [SL:NEARNESS nearest ] | [SL:NEARNESS closest ]",
    "nearby": "nearby | close by | around here",
    "shop": """
        gas station | pharmacy | coffee shop | supermarket | bank | hospital | bakery | parking garage | bus stop
        post office | pizza place | charging station
    """,
    "dwelling": "place | house | apartment | office",
    "by_mode": "by {mode}",
    "mode": "[SL:TRAVEL_MODE {vehicle} ]",
    "vehicle": "car | 2: bike | bus | train | subway | ferry",
    "leaving": "[SL:DATE_TIME {when} ]",
    "rush": "[SL:DATE_TIME right now ] | [SL:DATE_TIME {some_day} ] | [SL:DATE_TIME at {clock} ]",
    "on_road": "[SL:ROAD {road} ]",
    "road": """
        route 9 | highway 40 | the bay bridge | main street | the ring road | river road | interstate 7
        the north tunnel | elm street | sunset boulevard
    """,
}
