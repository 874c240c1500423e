"""The built-in traffic: IDM vehicles on a grid of streets with traffic lights."""
