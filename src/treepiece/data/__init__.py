"""Data: readers for TOPv2, TOP, TSV and JSONL, the download of TOPv2, and a toy grammar."""
