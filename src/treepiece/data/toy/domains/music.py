"""Music. The titles and artists are invented; titles hold words that elsewhere are a time, a place or a command."""

PHRASES = {
    "music": """
        12: [IN:PLAY_MUSIC {asked:play} ]
        [IN:PLAY_MUSIC {said:want_music} ]
        2: [IN:PAUSE_MUSIC {asked:pause} ]
        4: [IN:ADD_TO_PLAYLIST {asked:keep} ]
    """,
    "play": """
        3: {play_verb} {song}
        4: {play_verb} {song} by {artist}
        2: {play_verb} the song {song}
        2: {play_verb} {artist}
        2: {play_verb} something by {artist} {play_time?}
        2: {play_verb} the album {album} {by_artist?}
        3: {play_verb} some {genre} {music_word?} {play_time?}
        2: {play_verb} some {genre} for [SL:DURATION {duration} ]
        {play_verb} some {genre} by {artist}
        3: {play_verb} my {playlist} playlist {play_time?}
        {play_verb} my {playlist} playlist for [SL:DURATION {duration} ]
        {play_verb} my {playlist} playlist {play_place}
    """,
    "want_music": """
        2: i want to hear {song} {by_artist?}
        i feel like some {genre} {music_word?}
        i want to listen to {artist}
    """,
    "play_verb": "5: play | put on | start playing",
    "music_word": "music",
    "pause": "pause the music | stop the music | pause this song | stop playing",
    "keep": """
        3: add {song} {by_artist?} to my {playlist} playlist
        2: add this song to my {playlist} playlist
        save this to my {playlist} playlist
        put {song} on my {playlist} playlist
        add something by {artist} to my {playlist} playlist
    """,
    "song": "[SL:SONG {title} ]",
    "title": """
        2: tonight | five minutes | paris in the rain again | call me on sunday | monday morning lights | set the sails
        eleven paper boats | rain over lima | slow trains | remind me of june | turn off the moon | the long hallway
        tomorrow is a river | two hours of snow | kitchen light waltz | my sister ~'s garden | velvet static
        home before friday | a room in berlin | copper leaves
    """,
    "artist": "[SL:ARTIST {band} ]",
    "by_artist": "by {artist}",
    "band": """
        june harbor | the quiet lamps | austin grey | ruby falls choir | mira solen | the night bakers | paris moreau
        little compass | dj teapot | the weekday heroes | salt and timber | orla finch | the five minute men
        glass otters
    """,
    "album": "[SL:ALBUM {record} ]",
    "record": """
        songs for tuesday | midnight in oslo | borrowed weather | the blue ladder | half an hour of sun | postcards home
        small engines | winter timer | room for two | maps of nowhere
    """,
    "genre": "[SL:GENRE {style} ]",
    "style": """
        jazz | classical | hip hop | folk | techno | blues | reggae | indie rock | country | salsa | soul | disco
    """,
    "playlist": "[SL:PLAYLIST {mood} ]",
    "mood": """
        workout | road trip | dinner | sleep | rainy day | study | party | monday morning | summer in paris | focus
        cleaning | tonight
    """,
    "play_place": "in the [SL:ROOM {room} ]",
    "play_time": "[SL:DATE_TIME {when} ]",
}
