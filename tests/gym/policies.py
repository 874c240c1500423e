"""Policies for the tests: functions of what an agent sees."""

import numpy as np


def near_ones(seen):
    """Select the CVs in the inner half of the cell."""
    return ((seen["cvs"][:, 0] < 0) & (seen["mask"] > 0)).astype(np.int64)


def too_many(seen):
    return 10**6


class Three:
    """Let the planner choose three CVs."""

    def __call__(self, seen):
        return 3


class Counting:
    """Let the planner choose one CV in the first round, two in the second, and so on."""

    def __init__(self):
        self.rounds = 0

    def __call__(self, seen):
        self.rounds += 1
        return self.rounds

    def state(self):
        return {"rounds": self.rounds}

    def restore(self, state):
        self.rounds = state["rounds"]
