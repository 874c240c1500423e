"""Rules between keys: one sentence for each combination of values that is contradictory."""

import math
from collections.abc import Iterator

from vefl_sim.core.clock import to_ns
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.learning_tables import LearningTable


def contradictions(experiment: Experiment) -> Iterator[str]:
    """Yield one sentence for each contradictory combination of keys."""
    e = experiment
    slot_ms = e.slots.slot_ns / 1e6
    if e.run.rounds is not None and e.run.duration_s is not None:
        yield "run.rounds and run.duration_s both set the length of the run: keep one of them."
    if e.rounds < 1:
        yield (
            f"run.duration_s = {e.run.duration_s or 2000.0:g} is shorter than one round "
            f"(vefl.round_s = {e.vefl.round_s:g}): make it at least that long."
        )
    for key, value_s in (("vefl.round_s", e.vefl.round_s), ("mobility.step_s", e.mobility.step_s)):
        if to_ns(value_s) == 0 or to_ns(value_s) % e.slots.slot_ns:
            yield f"{key} = {value_s:g} is not a whole number of slots of {slot_ms:g} ms: round it."
    if e.traffic.mean_in_coverage is not None and e.traffic.arrivals_per_s is not None:
        yield "traffic.mean_in_coverage and traffic.arrivals_per_s both set the traffic: keep one of them."
    longest_m = e.roads.block_m * max(e.roads.blocks_xy)
    if e.mobility.kind == "idm" and longest_m < 2 * e.radio.coverage_radius_m:
        least = math.ceil(2 * e.radio.coverage_radius_m / e.roads.block_m)
        yield (
            f"The grid of roads.blocks × roads.block_m = {longest_m:g} m does not cover 2 × radio.coverage_radius_m = "
            f"{2 * e.radio.coverage_radius_m:g} m: give it a side of at least {least} blocks, or shrink the radius."
        )
    if e.mobility.kind == "playback" and not e.mobility.file:
        yield 'mobility.kind = "playback" needs mobility.file: name a run directory or a recording.'
    if e.mobility.kind == "sumo":
        yield from _sumo_contradictions(e)
    if e.data.kind == "folder" and not e.data.dir:
        yield 'data.kind = "folder" needs data.dir: name a folder, or a .zip, of train/<class>/<image> and test/….'
    subcarriers_hz = 12 * 15e3 * 2**e.radio.numerology
    if e.radio.prb_bandwidth_hz % subcarriers_hz:
        yield (
            f"radio.prb_bandwidth_hz = {e.radio.prb_bandwidth_hz:g} is not a multiple of the {subcarriers_hz:g} Hz "
            f"of 12 subcarriers at radio.numerology = {e.radio.numerology}: choose a multiple."
        )
    if e.rat.method == "exact" and e.radio.prbs > 12:
        yield 'rat.method = "exact" supports at most 12 pRBs (radio.prbs): use "auto" or "large".'
    if e.sla.cpu_min_hz[1] > e.sla.cpu_max_hz[0]:
        yield "sla.cpu_min_hz reaches above sla.cpu_max_hz: lower the one or raise the other."
    if e.vefl.min_local_iterations > e.vefl.max_local_iterations:
        yield (
            f"vefl.min_local_iterations = {e.vefl.min_local_iterations} is above "
            f"vefl.max_local_iterations = {e.vefl.max_local_iterations}: lower the one or raise the other."
        )
    if e.scheme.kind == "afa-cd" and e.learning.optimizer != "sgd":
        yield (
            f'scheme.kind = "afa-cd" divides an update by the sum of its step sizes, which learning.optimizer = '
            f'"{e.learning.optimizer}" does not define: use "sgd".'
        )
    if e.learning.iterations_per_step > 1 and e.scheme.kind != "centralized":  # which does not use the key
        yield from _step_contradictions(e.learning)


def _step_contradictions(learning: LearningTable) -> Iterator[str]:
    merged = f"learning.iterations_per_step = {learning.iterations_per_step}"
    if learning.optimizer != "sgd":
        yield f'{merged} needs learning.optimizer = "sgd", not "{learning.optimizer}": remove one of the two keys.'
    if learning.batch_size is not None:
        yield f"{merged} needs steps on all samples, not learning.batch_size: remove one of the two keys."


def _sumo_contradictions(e: Experiment) -> Iterator[str]:
    if not e.mobility.file:
        yield 'mobility.kind = "sumo" needs mobility.file: name a .sumocfg, a .net.xml or an .osm.'
    if e.mobility.origin_m is not None and e.mobility.origin_deg is not None:
        yield "mobility.origin_m and mobility.origin_deg both set the position of the gNB: keep one of them."
    if to_ns(e.mobility.step_s) % 1_000_000:
        yield f"mobility.step_s = {e.mobility.step_s:g} is not a whole number of milliseconds, as SUMO needs: round it."
    if e.mobility.start_s is not None and to_ns(e.mobility.start_s) % 1_000_000:
        start = f"mobility.start_s = {e.mobility.start_s:.10g}"
        yield f"{start} is not a whole number of milliseconds, as SUMO needs: round it."
    if e.mobility.start_s is not None and not e.traffic.warm_start:
        yield (
            "mobility.start_s lets the traffic settle before the run, but traffic.warm_start = false starts on empty "
            "streets: keep one of them."
        )
