"""What training minimises (`learning.loss`): a function of outputs and targets. JAX is imported when it is called.

A loss returns one number per sample; training minimises their mean. A user-defined one is `module:name`.
"""

from typing import Any, Protocol

from vefl_sim.experiment.plugins import Kind


class Loss(Protocol):
    """A loss; it is compiled, so it must use jax.numpy and no Python branches on values."""

    def __call__(self, outputs: Any, targets: Any, /) -> Any:
        """Loss of each sample, [batch]; outputs: [batch, …] of the network, targets: [batch, …] of the data set."""
        ...


def _cross_entropy(outputs: Any, targets: Any) -> Any:
    """−ln of the probability that the logits give to the class, for each sample."""
    import jax
    import jax.numpy as jnp

    log_probabilities = jax.nn.log_softmax(outputs)
    return -jnp.take_along_axis(log_probabilities, targets[:, None], axis=1)[:, 0]


def _squared_error(outputs: Any, targets: Any) -> Any:
    """Squared difference of outputs and targets, mean over the numbers of each sample."""
    differences = outputs.reshape(len(targets), -1) - targets.reshape(len(targets), -1)
    return (differences**2).mean(axis=1)


CROSS_ENTROPY = Kind(_cross_entropy)
"""For classes; in nats."""
MSE = Kind(_squared_error)
"""For targets that are numbers; in the square of their unit."""
