"""The RAT sub-problem solved exactly, for up to 12 pRBs."""
