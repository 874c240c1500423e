"""Putting vehicles on the streets all at once."""

import numpy as np

from vefl_sim.mobility.arrays import FloatArray, IntArray
from vefl_sim.mobility.grid.roads import StreetGrid
from vefl_sim.mobility.idm import IdmParams


def places(
    count: IntArray, grid: StreetGrid, params: IdmParams, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Edges and positions, in order, of vehicles at random between junctions, `count` of them on each edge.

    Uniform given that they keep the distance of equilibrium at the desired speed or, where there are too many
    for that, an equal share of the edge. Those who do not fit even at the minimum gap are left out.
    """
    first_m = grid.junction_m + params.length_m  # the tail is out of the junction
    usable_m = grid.stop_line_m - first_m
    closest_m = params.length_m + params.min_gap_m
    easy_m = closest_m + params.headway_s * params.desired_speed_mps
    count = np.minimum(count, 1 + int(usable_m / closest_m))
    space_m = np.maximum(np.minimum(usable_m / np.maximum(count, 1), easy_m), closest_m)
    edge = np.repeat(np.arange(grid.edges), count)
    rank = np.arange(edge.size) - np.repeat(count.cumsum() - count, count)
    uniform = rng.random(edge.size)
    uniform = uniform[np.lexsort((uniform, edge))]
    free_m = np.maximum(usable_m - (count - 1) * space_m, 0.0)
    return edge, first_m + uniform * free_m[edge] + rank * space_m[edge]
