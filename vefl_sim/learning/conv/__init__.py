"""A convolution with pooling as one compiled layer that JAX programs call."""
