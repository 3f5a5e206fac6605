"""Search for the best frame, given scores from anywhere: what may follow what, units, spans. Needs numpy.

Training, evaluation and the runtime all decode with this code, whatever computes their scores.
"""
