"""Assign one pRB to each CV: the linear assignment problem, by shortest augmenting paths (Jonker and Volgenant)."""

import numpy as np

from vefl_sim.core.kernel import float_kernel as kernel


@kernel
def assign(value, column_of):
    """Assign each row its own column so that the total value is largest; returns that total.

    There must not be more rows than columns. Dual prices keep value ≤ row price + column price, with equality on the
    pairs matched so far; each new row is matched along the path of least total slack. O(rows²·columns); SciPy's solver
    is as fast but cannot be called from a kernel. A path visits each column once, so n + 1 steps suffice for n columns;
    more would only be needed if a value is not finite, and then the assignment is arbitrary.
    """
    rows, n = value.shape
    for row in range(rows):
        column_of[row] = row
    row_price, column_price = np.zeros(rows), np.zeros(n + 1)
    row_of = np.full(n + 1, -1)  # row assigned to each column; column n stands for the row being assigned
    for row in range(rows):
        row_of[n] = row
        slack, previous, visited = np.full(n, np.inf), np.full(n, n), np.zeros(n + 1, np.bool_)
        current = n
        for _ in range(n + 1):
            visited[current] = True
            current_row, delta, next_column = row_of[current], np.inf, n
            for column in range(n):
                if visited[column]:
                    continue
                gap = -value[current_row, column] - row_price[current_row] - column_price[column]
                if gap < slack[column]:
                    slack[column], previous[column] = gap, current
                if slack[column] < delta:
                    delta, next_column = slack[column], column
            for column in range(n + 1):
                if visited[column]:
                    row_price[row_of[column]] += delta
                    column_price[column] -= delta
                elif column < n:
                    slack[column] -= delta
            current = next_column
            if row_of[current] < 0:
                break
        for _ in range(n + 1):
            if current == n:
                break
            row_of[current] = row_of[previous[current]]
            current = previous[current]
    total = 0.0
    for column in range(n):
        if row_of[column] >= 0:
            column_of[row_of[column]] = column
            total += value[row_of[column], column]
    return total
