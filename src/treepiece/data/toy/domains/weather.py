"""The weather and the sun."""

PHRASES = {
    "weather": """
        12: [IN:GET_WEATHER {question:weather_question} ]
        4: [IN:GET_WEATHER {asked:show_weather} ]
        3: [IN:GET_SUNSET {question:sunset_question} ]
    """,
    "weather_question": """
        4: {what_weather} {where_when}
        {what_weather} during [SL:DATE_TIME {event} ]
        4: {will_it} {where_when}
        {will_it} during [SL:DATE_TIME {event} ]
        2: do i need {gear} {where_when}
        2: how [SL:WEATHER_ATTRIBUTE {degree} ] {how_is_it} {where_when}
        2: how [SL:WEATHER_ATTRIBUTE {degree} ] {how_is_it} {in_city} in {unit}
        what ~'s the temperature {in_city?} in {unit}
    """,
    "what_weather": """
        what ~'s the weather | 2: what will the weather be like | how is the weather | what is the forecast
    """,
    "will_it": """
        2: will it [SL:WEATHER_ATTRIBUTE {fall} ]
        2: is it going to [SL:WEATHER_ATTRIBUTE {fall} ]
        will it be [SL:WEATHER_ATTRIBUTE {sky} ]
        is it going to be [SL:WEATHER_ATTRIBUTE {sky} ]
    """,
    "fall": "3: rain | 2: snow | hail | storm | drizzle | freeze",
    "sky": "sunny | cloudy | windy | foggy | clear | humid | stormy | dry",
    "degree": "hot | cold | warm | windy | humid | cloudy",
    "how_is_it": "is it | will it be | does it get",
    "gear": "an {thin_gear} | a {thick_gear} | [SL:WEATHER_ATTRIBUTE sunscreen ] | [SL:WEATHER_ATTRIBUTE sunglasses ]",
    "thin_gear": "[SL:WEATHER_ATTRIBUTE umbrella ]",
    "thick_gear": "[SL:WEATHER_ATTRIBUTE {clothes} ]",
    "clothes": "coat | jacket | rain coat | scarf | warm hat | sweater",
    "unit": "[SL:TEMPERATURE_UNIT {scale} ]",
    "scale": "2: celsius | 2: fahrenheit | degrees celsius | kelvin",
    "where_when": """
        3: {in_city} {forecast_time}
        2: {forecast_time} {in_city}
        3: {in_city}
        3: {forecast_time}
    """,
    "in_city": "in [SL:CITY {any_city} ]",
    "any_city": "3: {city} | {far_city}",
    "forecast_time": "4: {on_that_day} | [SL:DATE_TIME {near_day} at {clock} ] | [SL:DATE_TIME at {clock} ]",
    "on_that_day": "[SL:DATE_TIME {some_day} ]",
    "show_weather": """
        3: {get_forecast} for [SL:CITY {any_city} ] {forecast_time?}
        2: {get_forecast} for [SL:DATE_TIME {date} ]
        {get_forecast} for [SL:DATE_TIME {date} ] {in_city}
        {get_forecast}
    """,
    "get_forecast": "show me the forecast | get the weather | give me the weather report | tell me the weather",
    "sunset_question": """
        2: when is sunset {in_city?} {on_that_day?}
        2: what time does the sun set {in_city?}
        when does it get dark {on_that_day?} {in_city?}
        how long until sunset {in_city?}
    """,
}
