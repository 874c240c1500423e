"""The 5G-NR uplink: path loss, shadowing, fading, link budget."""
