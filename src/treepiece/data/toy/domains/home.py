"""Lights, devices and the thermostat."""

PHRASES = {
    "home": """
        6: [IN:TURN_ON {asked:switch_on} ]
        6: [IN:TURN_OFF {asked:switch_off} ]
        4: [IN:SET_TEMPERATURE {asked:heat} ]
    """,
    "switch_on": """
        2: turn on {what} {switch_time?}
        switch on {what} {switch_time?}
        2: turn {what} on {switch_time?}
        2: turn on {what} for [SL:DURATION {duration} ]
        turn on {what} at {at_sunset}
    """,
    "switch_off": """
        2: turn off {what} {switch_time?}
        switch off {what} {switch_time?}
        2: turn {what} off {switch_time?}
        2: turn off {what} for [SL:DURATION {duration} ]
        shut off {what} at {at_sunset}
    """,
    "switch_time": "[SL:DATE_TIME {when} ]",
    "at_sunset": "[SL:DATE_TIME [IN:GET_SUNSET sunset ] ]",
    "what": """
        3: the {device}
        3: the [SL:ROOM {room} ] [SL:DEVICE {fixture} ]
        2: the [SL:DEVICE {fixture} ] in the [SL:ROOM {room} ]
    """,
    "device": "[SL:DEVICE {appliance} ]",
    "appliance": """
        3: {fixture} | oven | coffee maker | air conditioner | sprinklers | dishwasher | alarm system | washing machine
        robot vacuum
    """,
    "fixture": "3: lights | 2: light | fan | tv | heater | radio | lamp | humidifier | speaker | night light",
    "room": """
        2: kitchen | bedroom | living room | garage | bathroom | office | basement | hallway | guest room | attic
        dining room | nursery
    """,
    "heat": """
        2: set the thermostat to {warmth} {switch_time?}
        2: set the [SL:ROOM {room} ] to {warmth} {switch_time?}
        2: set the temperature in the [SL:ROOM {room} ] to {warmth}
        keep the [SL:ROOM {room} ] at {warmth} for [SL:DURATION {duration} ]
        turn the heat {up_or_down} to {warmth} {switch_time?}
    """,
    "up_or_down": "up | down",
    "warmth": "[SL:TEMPERATURE {number} ] | 3: [SL:TEMPERATURE {number} degrees ]",
    "number": "60 | 62 | 64 | 65 | 66 | 68 | 70 | 72 | 75 | 78",
}
