"""Dead letters: the policy of a run, the places where they are written and read back, and how they are replayed.

What a letter contains is in ``model.dead_letter``; which place a run uses is decided in ``wiring.dead_letters``.
"""
