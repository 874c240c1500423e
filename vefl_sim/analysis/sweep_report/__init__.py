"""The report page of a sweep or comparison, from its index and its runs, which may come from a stranger."""
