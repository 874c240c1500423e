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
from numpy.typing import NDArray

from vefl_sim.core.arrays import NamedArrays, read_npz
from vefl_sim.core.errors import BadInput, ExperimentError, first_line
from vefl_sim.learning.jax_learner import array_name, parameter_shapes
from vefl_sim.learning.learner import Model
from vefl_sim.learning.model_card import ModelCard


@dataclass(frozen=True)
class TrainedModel:
    """A model of a run (`Run.model`): `parameters` for your own code, and `apply` for images."""

    card: ModelCard
    arrays: NamedArrays  # by their names in flax, such as params.Conv_0.kernel
    file: Path
    load: Callable[[], nn.Module]  # imports the network's factory, which may be user-defined code

    @cached_property
    def parameters(self) -> Model:
        """The parameters in nested dicts, as flax takes them; nothing is imported for this."""
        tree: dict[str, Any] = {}
        for name, array in self.arrays.items():
            *above, last = name.split(".")
            branch = tree
            for key in above:
                branch = branch.setdefault(key, {})
            branch[last] = array
        return tree

    @cached_property
    def module(self) -> nn.Module:
        """The flax network, made by its factory; BadInput if the parameters do not fit."""
        module = self.load()
        if fault := misfit(self.arrays, module, self.card.image_shape):
            raise BadInput(f"{self.file} does not fit {self.card.architecture}, because {fault}: restore the file.")
        return module

    def apply(self, images: NDArray[np.uint8]) -> NDArray[np.floating]:
        """Outputs of the network (logits), [samples, classes], for images [samples, height, width, channels].

        Images have numbers from 0 to 255; they are scaled as in the run.
        """
        if np.ndim(images) != 4 or np.shape(images)[1:] != self.card.image_shape:
            raise ValueError(f"images must have the shape (samples, {', '.join(map(str, self.card.image_shape))})")
        return np.asarray(self._outputs(model_from(self.arrays, self.module, self.card.image_shape), images))

    @cached_property
    def _outputs(self) -> Callable[[Model, NDArray[np.uint8]], jax.Array]:
        module, scaling = self.module, self.card.scaling
        return jax.jit(lambda model, images: module.apply(model, scaling(images.astype(jnp.result_type(float)))))


def model_from(arrays: NamedArrays, module: nn.Module, image_shape: tuple[int, int, int]) -> Model:
    """The model with these arrays, which fit the network; numbers get the types that the network has."""
    shapes = parameter_shapes(module, image_shape)
    return jax.tree.map_with_path(lambda path, leaf: jnp.asarray(arrays[array_name(path)].astype(leaf.dtype)), shapes)


def misfit(arrays: NamedArrays, module: nn.Module, image_shape: tuple[int, int, int]) -> str | None:
    """Why these arrays are not the parameters of a network, as a clause; None if they are."""
    try:
        shapes = parameter_shapes(module, image_shape)
    except Exception as error:  # a network may raise anything
        return f"the network does not take images of {_shown(image_shape)} ({first_line(error)})"
    wanted = {array_name(path): leaf.shape for path, leaf in jax.tree.leaves_with_path(shapes)}
    if missing := wanted.keys() - arrays.keys():
        return f"the file has no {min(missing)}"
    if more := arrays.keys() - wanted.keys():
        return f"the network has no {min(more)}"
    for name, shape in wanted.items():
        if arrays[name].shape != shape:
            return f"{name} has the shape {_shown(arrays[name].shape)} in the file and {_shown(shape)} in the network"
        if arrays[name].dtype.kind not in "fiubc":
            return f"{name} does not hold numbers"
    return None


def start_model(file: str, factory: str, module: nn.Module, image_shape: tuple[int, int, int]) -> Model:
    """The initial model in the file that `model.start` names; ExperimentError if it cannot be used."""
    try:
        arrays = read_npz(Path(file))
    except (OSError, ValueError) as error:
        raise ExperimentError(
            f'model.start = "{file}" cannot be read ({first_line(error)}): name the model.npz of a run, or a file that '
            "numpy.savez has written."
        ) from None
    if fault := misfit(arrays, module, image_shape):
        raise ExperimentError(
            f'model.start = "{file}" does not fit model.factory = "{factory}", because {fault}: name a model of the '
            "same network, image size and number of classes."
        )
    return model_from(arrays, module, image_shape)


def _shown(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "of one number"
