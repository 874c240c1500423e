"""Change one parameter and keep all others: the same vehicles and traffic with lower transmit power."""

import vefl_sim

base = vefl_sim.from_tables(
    {
        "run": {"name": "power", "rounds": 3},
        "scheme": {"selected": 10},
        "data": {"train_samples": 4000},
        "learning": {"kind": "none"},  # simulate only traffic and network, without training
    }
)

print("power_w  in_coverage  eligible  delivered")
for power_w in (0.2, 0.02, 0.002):
    run = vefl_sim.simulate(vefl_sim.with_settings(base, f"radio.max_tx_power_w={power_w}"))
    total = run.rounds[["in_coverage", "eligible", "delivered"]].sum()
    print(f"{power_w:7g}  {total['in_coverage']:11d}  {total['eligible']:8d}  {total['delivered']:9d}")
