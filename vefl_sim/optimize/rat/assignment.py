"""One pRB for each CV: the assignment problem, by shortest augmenting paths (Jonker and Volgenant)."""

import numpy as np

from vefl_sim.core.kernel import kernel


@kernel
def assign(value, column_of):
    """Give each row of a square matrix a column of its own so that the total value is largest; returns it.

    Dual prices keep value ≤ row price + column price, with equality on the pairs matched so far; each new row
    is matched along the path of least total slack. O(n³); scipy's is as fast but cannot be called from a kernel.
    """
    n = len(value)
    row_price, column_price = np.zeros(n + 1), np.zeros(n + 1)
    row_of = np.full(n + 1, -1)  # of a column; column n is a stand-in for the row being placed
    for row in range(n):
        row_of[n] = row
        slack, previous, seen = np.full(n, np.inf), np.full(n, n), np.zeros(n + 1, np.bool_)
        at = n
        while row_of[at] >= 0:
            seen[at] = True
            here, delta, following = row_of[at], np.inf, n
            for column in range(n):
                if seen[column]:
                    continue
                gap = -value[here, column] - row_price[here] - column_price[column]
                if gap < slack[column]:
                    slack[column], previous[column] = gap, at
                if slack[column] < delta:
                    delta, following = slack[column], column
            for column in range(n + 1):
                if seen[column]:
                    row_price[row_of[column]] += delta
                    column_price[column] -= delta
                elif column < n:
                    slack[column] -= delta
            at = following
        while at != n:
            row_of[at] = row_of[previous[at]]
            at = previous[at]
    total = 0.0
    for column in range(n):
        column_of[row_of[column]] = column
        total += value[row_of[column], column]
    return total
