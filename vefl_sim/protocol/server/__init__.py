"""The edge server: Algorithm 1 (`edge`), at its pace: in rounds, by a full buffer, or centrally."""
