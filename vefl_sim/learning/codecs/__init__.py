"""Codecs of updates (`update.codec`): what is sent, and what the server gets of it."""
