"""Where the points of a sweep run: the cores of this machine or a Dask cluster."""
