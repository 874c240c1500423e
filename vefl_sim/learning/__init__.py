"""Machine learning: data sets, their split over the CVs, local training, aggregation and evaluation."""
