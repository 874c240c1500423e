"""A trained model: parameters that a run has saved, and the network that they belong to."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from flax.traverse_util import unflatten_dict
from numpy.typing import NDArray

from vefl_sim.core.arrays import NamedArrays, read_npz
from vefl_sim.core.errors import BadInput, ExperimentError, first_line
from vefl_sim.experiment.complaints import shortened
from vefl_sim.learning.datasets.dataset import Inputs
from vefl_sim.learning.jax_learner import array_name, parameter_shapes
from vefl_sim.learning.learner import Model
from vefl_sim.learning.model_card import ModelCard
from vefl_sim.learning.network import input_spec, outputs_of, scaled


@dataclass(frozen=True)
class TrainedModel:
    """A model of a run (`Run.model`): `parameters` for your own code, and `apply` for inputs."""

    card: ModelCard
    arrays: NamedArrays  # by their names in flax, such as params.Conv_0.kernel
    file: Path
    load: Callable[[], nn.Module]  # imports the network's factory, which may be user-defined code

    @cached_property
    def parameters(self) -> Model:
        """The parameters in nested dicts, as flax takes them; nothing is imported for this."""
        try:
            return unflatten_dict(dict(sorted(self.arrays.items())), sep=".")  # type: ignore[no-untyped-call]
        except (IndexError, TypeError, ValueError):
            raise BadInput(f"{self.file} has an array inside of another array: restore the file.") from None

    @cached_property
    def module(self) -> nn.Module:
        """The flax network, made by its factory; BadInput if the parameters do not fit."""
        module = self.load()
        if fault := misfit(self.arrays, module, self._spec):
            fix = "restore the file, or name another round, of which a model was kept"
            raise BadInput(f"{self.file} does not fit {self.card.architecture}, because {fault}: {fix}.")
        return module

    def apply(self, inputs: Inputs) -> NDArray[np.floating]:
        """Outputs of the network, [samples, …], such as logits, for inputs [samples, …].

        Pixels have numbers from 0 to 255 and are scaled as in the run; other inputs are used as they are.
        """
        if np.shape(inputs)[1:] != self.card.input_shape:
            raise ValueError(f"inputs must have the shape (samples, {', '.join(map(str, self.card.input_shape))})")
        given = np.asarray(inputs)
        return np.asarray(self._outputs(self.model, given if self.card.scaling else given.astype(self.card.input_type)))

    @property
    def model(self) -> Model:
        """The parameters as arrays of JAX, of the types that the network has."""
        return model_from(self.arrays, self.module, self._spec)

    @cached_property
    def _spec(self) -> jax.ShapeDtypeStruct:
        return input_spec(self.card.input_shape, np.dtype(self.card.input_type))

    @cached_property
    def _outputs(self) -> Callable[[Model, Inputs], jax.Array]:
        module, scaling = self.module, self.card.scaling

        def outputs(model: Model, inputs: jax.Array) -> jax.Array:
            floats = inputs.astype(jnp.result_type(float)) if scaling else scaled(inputs)
            return outputs_of(module, model, scaling(floats) if scaling else floats)

        return jax.jit(outputs)


def model_from(arrays: NamedArrays, module: nn.Module, spec: jax.ShapeDtypeStruct) -> Model:
    """The model with these arrays, which fit the network; numbers get the types that the network has."""
    shapes = parameter_shapes(module, spec)
    return jax.tree.map_with_path(lambda path, leaf: jnp.asarray(arrays[array_name(path)].astype(leaf.dtype)), shapes)


def misfit(arrays: NamedArrays, module: nn.Module, spec: jax.ShapeDtypeStruct) -> str | None:
    """Why these arrays are not the parameters of a network, as a clause; None if they are."""
    try:
        shapes = parameter_shapes(module, spec)
    except Exception as error:  # a network may raise anything
        return f"the network does not take inputs of shape {spec.shape[1:]} ({first_line(error)})"
    wanted = {array_name(path): leaf for path, leaf in jax.tree.leaves_with_path(shapes)}
    if missing := wanted.keys() - arrays.keys():
        return f"the file has no {min(missing)}"
    if more := arrays.keys() - wanted.keys():
        return f"the network has no {shortened(min(more))}"
    return next((fault for name, leaf in wanted.items() if (fault := _misfit(name, arrays[name], leaf))), None)


def _misfit(name: str, array: NDArray[Any], leaf: jax.ShapeDtypeStruct) -> str | None:
    """Why an array of a file is not this parameter of the network; None if it is."""
    if array.shape != leaf.shape:
        return f"{name} has the shape {array.shape} in the file and {leaf.shape} in the network"
    if array.dtype.kind not in "fiub":
        return f"{name} does not hold real numbers"
    with np.errstate(over="ignore"):
        finite = np.isfinite(array.astype(leaf.dtype)).all()
    return None if finite else f"{name} holds NaN or infinite numbers, as after a training that has diverged"


def start_model(file: str, factory: str, module: nn.Module, spec: jax.ShapeDtypeStruct) -> Model:
    """The initial model in the file that `model.start` names; ExperimentError if it cannot be used."""
    try:
        arrays = read_npz(Path(file))
    except (OSError, ValueError) as error:
        raise ExperimentError(
            f'model.start = "{file}" cannot be read ({first_line(error)}): name the model.npz of a run, or a file that '
            "numpy.savez has written."
        ) from None
    if fault := misfit(arrays, module, spec):
        raise ExperimentError(
            f'model.start = "{file}" does not fit model.factory = "{factory}", because {fault}: name a model of the '
            "same network, input size and number of outputs."
        )
    return model_from(arrays, module, spec)
