from numba import njit


@njit(cache=True)
def large(gain, weight, price, power, floor, cap, owner, watts, rate):
    return 0.0, 0.0, 0.0
