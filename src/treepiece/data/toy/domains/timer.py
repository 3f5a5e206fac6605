"""Timers and alarms."""

PHRASES = {
    "timer": """
        6: [IN:CREATE_TIMER {asked:set_timer} ]
        2: [IN:DELETE_TIMER {asked:stop_timer} ]
        5: [IN:CREATE_ALARM {asked:set_alarm} ]
    """,
    "set_timer": """
        4: {start} a timer for {lasting}
        3: {start} a {short_lasting} timer
        2: {start} a {short_lasting} {timer_name} timer
        2: {start} a {timer_name} timer for {lasting}
        2: {start} a timer for the {timer_name} for {lasting}
        {start} a timer
        count down {lasting}
    """,
    "start": "3: set | 2: start | create",
    "lasting": "[SL:DURATION {duration} ]",
    "short_lasting": "[SL:DURATION {short_duration} ]",
    "short_duration": "five minute | ten minute | 20 minute | one hour | two hour | 90 second | 45 minute | half hour",
    "timer_name": "[SL:TIMER_NAME {cooking} ]",
    "cooking": "pasta | egg | pizza | laundry | workout | bread | tea | rice | nap | homework | dinner | study",
    "stop_timer": """
        2: {stop} the {timer_name} timer
        {stop} the {short_lasting} timer
        {stop} my timer
    """,
    "stop": "cancel | stop | delete | turn off",
    "set_alarm": """
        4: {start} an alarm for [SL:DATE_TIME {alarm_time} ]
        3: wake me up {wake_time}
        2: wake me up [SL:FREQUENCY {daily} ] [SL:DATE_TIME at {clock} ]
        {start} an alarm [SL:FREQUENCY {daily} ] [SL:DATE_TIME at {clock} ]
    """,
    "alarm_time": "3: {clock} | {near_day} at {clock} | {weekday} at {clock}",
    "wake_time": """
        2: [SL:DATE_TIME at {clock} ]
        [SL:DATE_TIME {near_day} at {clock} ]
        [SL:DATE_TIME on {weekday} at {clock} ]
        [SL:DATE_TIME in {duration} ]
    """,
}
