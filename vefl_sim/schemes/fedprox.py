"""FedProx and FedAvg: every CV trains as long as its share of the budget allows; updates are weighted by data size.

Li et al., Federated Optimization in Heterogeneous Networks (2020); McMahan et al., Communication-Efficient Learning of
Deep Networks from Decentralized Data (2017), which is the case μ = 0.
"""

from collections.abc import Iterator

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import Unused
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.planning import equal_shares_for_all
from vefl_sim.schemes.scheme import BYZANTINE_KEYS, KEYS_WITHOUT_ROUNDS, PROBLEM_KEYS, RULE_KEYS, Plan, Scheme
from vefl_sim.schemes.weights import shares_over, unused_if_delivered


class FedProx(Scheme):
    """Equal shares of the budget, full CPU speed; weights D_v/Σ D, over the delivered or `aggregation.weights_over`."""

    label = "FedProx"
    unused_keys: tuple[str, ...] = (*RULE_KEYS, *PROBLEM_KEYS, *KEYS_WITHOUT_ROUNDS, *BYZANTINE_KEYS)
    unused_environment = ("scheme.selected",)

    @staticmethod
    def unused_when(experiment: Experiment) -> Iterator[Unused]:
        """Yield the keys without effect because the applied weights sum to one."""
        yield from unused_if_delivered(experiment.aggregation.weights_over or "delivered")

    def plan(self, observation: Observation) -> Plan:
        """Order every eligible CV, within a share Ξ/V of the budget each."""
        return equal_shares_for_all(
            observation.at_most(self._experiment.vefl.budget), self._experiment.scheme.constrained
        )

    def aggregate(self, observation: Observation, plan: Plan, delivered: Ints) -> Floats:
        """Share of each delivered update in the data."""
        whole = self._experiment.aggregation.weights_over or "delivered"
        return shares_over(whole, observation.snapshot.samples, observation, plan, delivered)


class FedAvg(FedProx):
    """FedProx without the proximal term."""

    label = "FedAvg"
    proximal_mu = 0.0
    unused_keys = (*FedProx.unused_keys, "learning.proximal_mu")
