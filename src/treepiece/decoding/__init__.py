"""Search for the best frame, given the scores of any model: grammars, units, spans. Needs numpy.

Training, evaluation and the runtime all use this code, whatever computes the scores.
"""
