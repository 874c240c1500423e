"""The files of data sets: where they are, how they are read, and where they are downloaded from."""
