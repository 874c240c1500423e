"""Strategies of Flower as schemes: `scheme.kind = "vefl_sim.flower:Strategy"` (pip install 'vefl_sim[flower]').

The strategy aggregates the delivered updates, unchanged, and may choose who trains. Flower's network is not used.

scheme       the scheme: what the strategy is asked, and when
clients      what a strategy sees in the place of clients, and what they send
attributes   what a strategy remembers, for checkpoints
"""

from vefl_sim.flower.scheme import Strategy as Strategy
