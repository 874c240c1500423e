"""Rules between keys: one sentence for each combination of values that is contradictory."""

from collections.abc import Iterator
from math import log10

from vefl_sim.core.clock import to_ns
from vefl_sim.experiment.changes import with_changes, wrong_changes
from vefl_sim.experiment.experiment import Experiment, LearningTable
from vefl_sim.experiment.plugins import declared_results, kinds_of, require_declarations
from vefl_sim.experiment.unused_keys import is_used, unused_keys

MAX_ROUNDS = 1_000_000
_OPTIMIZE_POWERS = ("assignment", "large", "sca", "sca-perspective")


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
    if e.rounds > MAX_ROUNDS:
        yield (
            f"run.duration_s = {e.run.duration_s or 2000.0:g} has {e.rounds} rounds of vefl.round_s = "
            f"{e.vefl.round_s:g}, and {MAX_ROUNDS} is the maximum: shorten the run, or lengthen the rounds."
        )
    for key, value_s in (("vefl.round_s", e.vefl.round_s), ("mobility.step_s", e.mobility.step_s)):
        if to_ns(value_s) == 0 or to_ns(value_s) % e.slots.slot_ns:
            yield f"{key} = {value_s:g} is not a whole number of slots of {slot_ms:g} ms: round it."
    if e.traffic.mean_in_coverage is not None and e.traffic.arrivals_per_s is not None:
        yield "traffic.mean_in_coverage and traffic.arrivals_per_s both set the traffic: keep one of them."
    subcarriers_hz = 12 * 15e3 * 2**e.radio.numerology
    if e.radio.prb_bandwidth_hz % subcarriers_hz:
        yield (
            f"radio.prb_bandwidth_hz = {e.radio.prb_bandwidth_hz:g} is not a multiple of the {subcarriers_hz:g} Hz "
            f"of 12 subcarriers at radio.numerology = {e.radio.numerology}: choose a multiple."
        )
    yield from _radio_contradictions(e)
    if e.sla.cpu_min_hz[1] > e.sla.cpu_max_hz[0]:
        yield "sla.cpu_min_hz reaches above sla.cpu_max_hz: lower the one or raise the other."
    if e.vefl.min_local_iterations > e.vefl.max_local_iterations:
        yield (
            f"vefl.min_local_iterations = {e.vefl.min_local_iterations} is above "
            f"vefl.max_local_iterations = {e.vefl.max_local_iterations}: lower the one or raise the other."
        )
    if e.learning.keep_models == "best" and not e.data.validation_samples:
        yield (
            'learning.keep_models = "best" would choose a model by its results on the test set: set '
            "data.validation_samples, or keep the models of every n-th round."
        )
    if e.learning.momentum and e.learning.optimizer != "sgd":
        yield (
            f'learning.momentum = {e.learning.momentum:g} needs learning.optimizer = "sgd", not '
            f'"{e.learning.optimizer}": remove one of the two keys.'
        )
    merged, plain, given = e.learning.iterations_per_step, LearningTable(), e.learning
    if merged > 1 and is_used(e, "learning.iterations_per_step"):
        keys = ("optimizer", "momentum", "batch_size")
        if changed := [f"learning.{key}" for key in keys if getattr(given, key) != getattr(plain, key)]:
            yield (
                f"learning.iterations_per_step = {merged} needs plain gradient steps on all samples: remove it, or "
                f"{' and '.join(changed)}."
            )
    for key, name in kinds_of(e):
        require_declarations(key, name)
        yield from declared_results(key, name, "contradictions", e)
    wrong = [*wrong_changes(e)]
    yield from wrong
    if not wrong:
        yield from _contradictions_after_changes(e)


def _contradictions_after_changes(e: Experiment) -> Iterator[str]:
    """Yield what is wrong with the experiment after each change, together with those above it in the file."""
    for count in range(1, len(e.change) + 1):
        changed = with_changes(e, range(count)).model_copy(update={"change": ()})
        useless = [sentence for key, sentence in unused_keys(changed) if key in e.change[count - 1].keys]
        yield from (f"change {count}: {sentence}" for sentence in (*contradictions(changed), *useless))


def _radio_contradictions(e: Experiment) -> Iterator[str]:
    """Yield one sentence for each contradictory combination of keys of the radio."""
    radio, mac = e.radio, e.mac
    if "U" not in mac.tdd:
        yield f'mac.tdd = "{mac.tdd}" has no uplink slot: add a U to the pattern.'
    slots = e.round_ns // e.slots.slot_ns
    delays = {"radio.csi_delay_slots": radio.csi_delay_slots, "mac.grant_delay_slots": mac.grant_delay_slots}
    for key, value in (delays | {"mac.bsr_slots": mac.bsr_slots, "the pattern mac.tdd": len(mac.tdd)}).items():
        if value > slots:
            yield f"{key} has {value} slots, longer than the round of {slots} slots (vefl.round_s): shorten it."
    wait_slots = mac.grant_delay_slots + mac.bsr_slots - 1
    if max(mac.grant_delay_slots, mac.bsr_slots) <= slots < wait_slots:
        yield (
            f"mac.grant_delay_slots and mac.bsr_slots let a CV wait for {wait_slots} slots, longer than the {slots} "
            "slots of a round (vefl.round_s): shorten one of them."
        )
    if e.downlink.kind == "broadcast" and "D" not in mac.tdd and set(mac.tdd) != {"U"}:
        yield f'downlink.kind = "broadcast" needs downlink slots in mac.tdd = "{mac.tdd}": add a D to the pattern.'
    if radio.power == "open-loop" and radio.p0_dbm > (limit_dbm := 10 * log10(radio.max_tx_power_w) + 30):
        yield f"radio.p0_dbm = {radio.p0_dbm:g} is above P_max (radio.max_tx_power_w, {limit_dbm:.1f} dBm): lower it."
    if radio.power == "open-loop" and e.rat.method in _OPTIMIZE_POWERS:
        yield (
            f'rat.method = "{e.rat.method}" optimizes powers, which radio.power = "open-loop" sets: use "auto", '
            '"exact" or a policy.'
        )
