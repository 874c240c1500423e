"""The files behind data sets: where they are, how they are read, and where they can be downloaded."""
