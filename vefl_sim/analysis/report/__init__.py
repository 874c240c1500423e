"""The report page of a run: one HTML file that shows what happened, and makes no network request."""
