"""A convolution with pooling as one compiled layer, called from JAX programs."""
