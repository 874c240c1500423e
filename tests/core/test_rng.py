from vefl_sim.core.rng import Streams


def test_seed_name_and_index_all_matter() -> None:
    draws = [
        float(streams.generator(name, *index).random())
        for streams in (Streams(1), Streams(2))
        for name in ("traffic", "slas")
        for index in ((), (0,), (1,), (0, 1))
    ]
    assert len(set(draws)) == len(draws)
    assert Streams(1).generator("traffic", 0, 1).random() in draws


def test_philox_keys_have_128_bits_and_differ_by_name() -> None:
    keys = {Streams(seed).philox_key(name) for seed in range(20) for name in ("fading", "other")}
    assert len(keys) == 40
    assert max(keys).bit_length() > 120
