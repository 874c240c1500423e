"""Our own traffic: IDM vehicles on a grid of streets with signals."""
