"""Messages, calls and contacts."""

PHRASES = {
    "messaging": """
        9: [IN:SEND_MESSAGE {asked:send_message} ]
        [IN:SEND_MESSAGE {said:message_later} ]
        2: [IN:GET_MESSAGE {asked:read_messages} ]
        2: [IN:GET_MESSAGE {question:which_messages} ]
        3: [IN:REPLY_MESSAGE {asked:reply} ]
        4: [IN:CREATE_CALL {asked:call} ]
        [IN:GET_CONTACT {question:which_number} ]
    """,
    "send_message": """
        6: {message_with_content}
        2: {text_verb} {recipients}
        2: send {recipients} a message {on_channel?} saying {content}
        2: send a message to {recipients} {on_channel?} saying {content}
        2: message {recipient} [SL:DATE_TIME {when} ] saying {content}
        send {recipient} a message on {channel}
    """,
    "message_with_content": """
        3: tell {recipients} {content}
        3: tell {recipients} that {fact}
        2: let {recipient} know {fact}
        2: let {recipient} know that {fact}
        2: text {recipient} that {fact}
        2: ask {recipient} {inquiry}
    """,
    "message_later": "[SL:DATE_TIME {when} ] {text_verb} {recipient} that {fact}",
    "text_verb": "3: text | 2: message | write to | send a text to",
    "recipients": "6: {recipient} | [SL:RECIPIENT {group} ] | {recipient} and [SL:RECIPIENT {group} ]",
    "recipient": "2: {recipient_named} | [SL:RECIPIENT {relative} ]",
    "recipient_named": "[SL:RECIPIENT {name} ]",
    "on_channel": "on {channel}",
    "channel": "[SL:CHANNEL {app} ]",
    "app": "whatsapp | slack | telegram | discord | messenger | signal | teams | skype | zoom | instagram",
    "content": "[SL:CONTENT {remark} ] | 3: {fact}",
    "remark": """
        happy birthday | good luck with the exam | thanks for the ride | give me five minutes | see you in {city}
        have fun tonight | call me {content_time}
    """,
    "fact": "[SL:CONTENT {news} ]",
    "news": """
        3: i will be {somewhere} {content_time}
        2: the {gathering} is {content_time}
        2: i am {state}
        i am in {city} {content_time}
        we are out of {goods}
        the {appliance} is broken
        dinner is ready | the package arrived | i found the keys | the wifi is down | i miss everyone
    """,
    "somewhere": "home | late | at work | on the train | back | free",
    "state": "running late | almost there | stuck in traffic | feeling better | so tired | outside | proud of you",
    "content_time": "2: tonight | tomorrow | on {weekday} | at {clock} | in {duration} | this weekend",
    "inquiry": "[SL:CONTENT {asking} ]",
    "asking": """
        if the {gathering} is still {content_time} | if we need {goods} | what time the {gathering} starts
        if i left my jacket there | how the exam went | where the spare key is | what to bring {content_time}
    """,
    "read_messages": """
        2: {show} my messages
        2: {show} my messages from {sender} {back_then?}
        {show} my [SL:CHANNEL {app} ] messages {back_then?}
        {show} the messages i got {back_then}
    """,
    "which_messages": """
        do i have any new messages {on_channel?}
        did {sender} text me {back_then?}
        did i get a message from {sender} {back_then?}
        what did {sender} write {back_then?}
    """,
    "sender": "3: {sender_named} | [SL:SENDER {relative} ]",
    "sender_named": "[SL:SENDER {name} ]",
    "back_then": "[SL:DATE_TIME {past} ]",
    "reply": """
        3: {answer} [SL:MESSAGE {message} ]
        3: {answer} [SL:MESSAGE {message} ] saying {content}
        2: reply to {recipient} that {fact}
    """,
    "answer": "2: reply to | answer | respond to",
    "message": """
        2: {message_short}
        [IN:GET_MESSAGE the message from {sender} ]
        [IN:GET_MESSAGE the message i got {back_then} ]
    """,
    "message_short": "[IN:GET_MESSAGE {which} message ] | 2: [IN:GET_MESSAGE {which} message from {sender_named} ]",
    "which": "the | the last | the first",
    "call": """
        4: {call_verb} {contact}
        2: {call_verb} {contact} and [SL:CONTACT {group} ]
        2: {call_verb} {contact} {on_channel}
        2: {call_verb} {contact} [SL:DATE_TIME {when} ]
        give {contact} a call {on_channel?}
    """,
    "call_verb": "4: call | phone | ring",
    "which_number": """
        2: what is {contact_named} ~'s number
        2: what ~'s my [SL:TYPE_RELATION {relation} ] ~'s number
        do i have a number for {contact_named}
    """,
}
