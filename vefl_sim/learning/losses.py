"""What training minimises (`learning.loss`): a function of outputs and targets. JAX is imported when it is called.

A loss returns one number per sample; training minimises their mean. A user-defined one is `module:name`.
"""

from typing import Any, Protocol

from vefl_sim.core.errors import ExperimentError, first_line
from vefl_sim.experiment.plugins import Kind
from vefl_sim.learning.datasets.dataset import Dataset


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


def require_loss(loss: Loss, name: str, module: Any, dataset: Dataset) -> None:
    """Refuse a network whose outputs do not fit the targets, or a loss that is not one number per sample."""
    import jax
    import jax.numpy as jnp

    from vefl_sim.learning.network import initialize, input_spec, outputs_of

    spec = input_spec(dataset.input_shape, dataset.train_inputs.dtype)
    targets = dataset.train_targets[:1]

    def losses() -> Any:
        model = initialize(module, 0, spec)
        return loss(outputs_of(module, model, jnp.zeros(spec.shape, spec.dtype)), targets)

    try:
        per_sample = jax.eval_shape(losses)
    except Exception as error:
        raise ExperimentError(
            f'learning.loss = "{name}" cannot be computed from the outputs of {type(module).__name__} and the targets '
            f"of {dataset.name}: {first_line(error)}"
        ) from error
    if getattr(per_sample, "shape", None) != (1,):
        raise ExperimentError(
            f'learning.loss = "{name}" must return one number per sample, shape (samples,), not '
            f"{getattr(per_sample, 'shape', type(per_sample).__name__)}: take the mean over the other axes only."
        )
