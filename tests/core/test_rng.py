import numpy as np

from vefl_sim.core.rng import Streams


def test_the_same_name_gives_the_same_draws() -> None:
    assert np.array_equal(Streams(7).generator("traffic").random(5), Streams(7).generator("traffic").random(5))


def test_seed_name_and_index_all_matter() -> None:
    draws = [
        float(streams.generator(name, *index).random())
        for streams in (Streams(1), Streams(2))
        for name in ("traffic", "slas")
        for index in ((), (0,), (1,), (0, 1))
    ]
    assert len(set(draws)) == len(draws)


def test_draws_of_one_stream_change_no_other_stream() -> None:
    streams = Streams(3)
    before = streams.generator("slas", 5).random()
    streams.generator("traffic").random(1000)
    assert streams.generator("slas", 5).random() == before


def test_philox_keys_have_128_bits_and_differ_by_name() -> None:
    keys = {Streams(seed).philox_key(name) for seed in range(20) for name in ("fading", "other")}
    assert len(keys) == 40
    assert max(keys).bit_length() > 120
