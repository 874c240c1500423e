"""Machine learning: data, who holds it, local training, aggregation and evaluation."""
