"""Data sets of labelled images: from files or drawn, whole or in part."""
