"""Files of many rows: read in pieces, parsed, and written in parts that an interruption does not lose."""
