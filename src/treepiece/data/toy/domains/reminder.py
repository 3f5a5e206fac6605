"""Reminders. What to do is either plain words or, where the assistant could do it itself, a nested intent."""

PHRASES = {
    "reminder": """
        14: [IN:CREATE_REMINDER {asked:remind} ]
        5: [IN:CREATE_REMINDER {said:note} ]
        2: [IN:GET_REMINDER {asked:list_reminders} ]
        2: [IN:GET_REMINDER {question:which_reminders} ]
        3: [IN:DELETE_REMINDER {asked:drop_reminder} ]
        3: [IN:UPDATE_REMINDER {asked:move_reminder} ]
    """,
    "remind": """
        5: remind {reminded} to {todo}
        6: remind {reminded} to {todo} {at_time}
        4: remind {reminded} {at_time} to {todo}
        2: remind {reminded} {at_time} to {todo_message}
        2: remind {reminded} to {todo} [SL:FREQUENCY {often} ]
        remind {reminded} to {todo} [SL:FREQUENCY {daily} ] [SL:DATE_TIME at {clock} ]
        remind {reminded} [SL:FREQUENCY {often} ] to {todo_plain}
        3: remind {reminded} about {matter} {at_time?}
        2: {set_reminder} to {todo} {at_time?}
        {set_reminder} for [SL:DATE_TIME {date} ] to {todo}
    """,
    "note": """
        2: i need to remember to {todo} {at_time?}
        i need a reminder to {todo} {at_time?}
        {at_time} remind {reminded} to {todo}
        never let me forget to {todo} {at_time?}
        i must not forget about {matter} {at_time?}
    """,
    "set_reminder": "set a reminder | make a reminder | create a reminder | add a reminder",
    "list_reminders": """
        2: {show} my reminders
        2: {show} my reminders for [SL:DATE_TIME {date} ]
        {show} all reminders about {matter_plain}
    """,
    "show": "show me | list | read me | pull up",
    "which_reminders": """
        what reminders do i have {that_day?}
        do i have any reminders {that_day?}
        do i have a reminder to {todo_plain} {that_day?}
        do i have a reminder to {todo_contact}
    """,
    "drop_reminder": """
        2: {drop} my reminder to {todo_plain}
        {drop} my reminder to {todo_contact}
        2: {drop} the reminder about {matter}
        {drop} my reminders for [SL:DATE_TIME {date} ]
        {drop} my [SL:DATE_TIME {clock} ] reminder
    """,
    "drop": "delete | cancel | remove | get rid of",
    "move_reminder": """
        3: {move} my reminder to {todo_plain} to {new_date}
        {move} the reminder about {matter_plain} to {new_date}
        2: {move} my [SL:DATE_TIME {clock} ] reminder to {new_date}
        {move} my reminders for [SL:DATE_TIME {day} ] to {new_date}
    """,
    "move": "move | change | push | reschedule",
    "reminded": """
        12: [SL:PERSON_REMINDED me ]
        [SL:PERSON_REMINDED us ]
        2: [SL:PERSON_REMINDED {name} ]
        [SL:PERSON_REMINDED {relative} ]
    """,
    "at_time": "[SL:DATE_TIME {when} ]",
    "that_day": "[SL:DATE_TIME {some_day} ]",
    "new_date": "[SL:NEW_DATE_TIME {date} ]",
    "matter": "{matter_plain} | 2: [SL:TODO {event} ]",
    "matter_plain": "[SL:TODO {thing} ]",
    "thing": """
        the rent | my car keys | the laundry | the bake sale | my library books | the parking permit | the tax forms
        the leaky faucet | our anniversary | the cake in the oven
    """,
    "todo": "2: {todo_plain} | [SL:TODO {todo_intent} ]",
    "todo_plain": "[SL:TODO {errand} ]",
    "errand": """
        4: buy {goods}
        2: pick up {goods}
        2: pick up {ready_goods}
        2: pay {bill}
        2: feed the {pet}
        2: {chore}
        {dated_errand}
    """,
    "goods": """
        milk | eggs and bread | stamps | light bulbs | flowers | cat food | paper towels | birthday candles
        printer ink | coffee beans
    """,
    "ready_goods": """
        the dry cleaning | the concert tickets | my prescription | the birthday cake | my new glasses | a parcel
    """,
    "bill": "the rent | the gas bill | the babysitter | my taxes | the electrician | the water bill",
    "pet": "cat | dog | fish | hamster | neighbor ~'s rabbit",
    "chore": """
        water the plants | clean the kitchen | take out the trash | charge my laptop | renew my passport | take my pills
        defrost the chicken | return the library books | back up my photos | sign the permission slip
        vacuum the stairs | wash the car
    """,
    # Words that would be a time or a place anywhere else.
    "dated_errand": """
        stretch for {duration} | book a table for {weekday} | watch the tonight show | pack for {city}
        buy train tickets to {city} | plan the {weekday} meeting
    """,
    "todo_intent": """
        9: {contact_intent}
        2: [IN:REPLY_MESSAGE reply to [SL:MESSAGE {message_short} ] ]
        2: [IN:TURN_OFF turn off the {device} ]
        [IN:GET_WEATHER check the weather in [SL:CITY {city} ] ]
        [IN:GET_TRAFFIC check the traffic on [SL:ROAD {road} ] ]
        [IN:GET_DIRECTIONS get directions to {destination_short} ]
        [IN:PAUSE_MUSIC stop the music ]
    """,
    "todo_contact": "[SL:TODO {contact_intent} ]",
    "contact_intent": "[IN:CREATE_CALL {call_verb} {contact} ] | [IN:SEND_MESSAGE {text_verb} {recipient} ]",
    # A message with its content ends the request: a time after it would be part of the content.
    "todo_message": "[SL:TODO [IN:SEND_MESSAGE {message_with_content} ] ]",
}
