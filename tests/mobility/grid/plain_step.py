"""One step of the traffic as the documentation describes it: one vehicle at a time, with lists and dictionaries.

The slow, readable twin of `vefl_sim.mobility.grid.step.step`.
"""

import copy
from math import inf, sqrt

from vefl_sim.mobility.grid.junctions import PATHS_MEET


def vehicles_of(fleet):
    """A fleet as a list of dictionaries."""
    columns = {**fleet._asdict(), **fleet.driver._asdict()}
    del columns["driver"]
    return [{name: column[i].item() for name, column in columns.items()} for i in range(fleet.size)]


class PlainStep:
    """One step on given streets; changes `vehicles` in place."""

    def __init__(self, vehicles, ways, signals, rules, now):
        self.vehicles, self.ways, self.signals, self.rules = vehicles, ways, signals, rules
        self.step, self.time_ns = now

    def run(self):
        self.give_back()
        self.clear()
        before = copy.deepcopy(self.vehicles)
        for new, old in zip(self.vehicles, before, strict=True):
            speed = self.next_speed(old, before)
            new["position_m"] += (old["speed_mps"] + speed) / 2 * self.rules.dt_s
            new["speed_mps"] = speed

    def light(self, v):
        """green, amber or red, found by going through the phases of the cycle."""
        green, amber = self.signals.green_ns, self.signals.amber_ns
        if not green:
            return "green"
        junction, across = self.ways.junction[v["edge"]], self.ways.heading[v["edge"]] % 2
        here = (self.time_ns + int(self.signals.offset_ns[junction])) % (2 * (green + amber))
        plan = [(green, "green"), (amber, "amber"), (green + amber, "red")]
        if across:
            plan = [(green + amber, "red"), (green, "green"), (amber, "amber")]
        for duration, colour in plan:
            if here < duration:
                return colour
            here -= duration
        raise AssertionError

    def give_back(self):
        for v in self.vehicles:
            x, u, b, dt = v["position_m"], v["speed_mps"], self.rules.stop_decel_mps2, self.rules.dt_s
            while u > 0:
                slower = max(0.0, u - b * dt)
                x, u = x + (u + slower) / 2 * dt, slower
            if v["cleared"] and self.light(v) != "green" and x <= self.ways.stop_line_m + 1e-12:
                v["cleared"], v["limit_m"] = False, self.ways.stop_line_m

    def clear(self):
        asking = [v for v in self.vehicles if self.must_ask(v)]
        for v in asking:
            if v["asked_step"] < 0:
                v["asked_step"] = self.step
        waiting = []
        for v in sorted(asking, key=lambda v: (v["asked_step"], v["vehicle"])):
            if self.light(v) != "green" or self.waits_behind(v) or not self.has_room(v):
                continue
            others = waiting + [(w, a, b) for w in self.vehicles for a, b in self.crossing(w) if w is not v]
            if not any(self.meet((v["edge"], v["next_edge"]), (a, b)) for _, a, b in others):
                v["cleared"] = True
                v["limit_m"] = self.ways.block_m + self.ways.limit_m[v["next_edge"]]
            waiting.append((v, v["edge"], v["next_edge"]))

    def crossing(self, v):
        """The paths through junctions that a vehicle holds."""
        if v["cleared"]:
            yield v["edge"], v["next_edge"]
        if v["came_from"] >= 0 and v["position_m"] - self.rules.length_m < self.ways.junction_m:
            yield v["came_from"], v["edge"]

    def meet(self, one, other):
        heading, junction = self.ways.heading, self.ways.junction
        index = [4 * heading[a] + heading[b] for a, b in (one, other)]
        return junction[one[0]] == junction[other[0]] and PATHS_MEET[index[0], index[1]]

    def must_ask(self, v):
        fastest = min(v["speed_mps"] + v["max_accel_mps2"] * self.rules.dt_s, v["desired_speed_mps"])
        return not v["cleared"] and self.stopping_speed(v) < fastest

    def waits_behind(self, v):
        leader, _ = self.ahead(v, self.vehicles)
        return leader is not None and leader["edge"] == v["edge"] and not leader["cleared"]

    def has_room(self, v):
        target = v["next_edge"]
        last, back = self.rear(target, self.vehicles)
        end = self.ways.limit_m[target]
        if last:
            end = min(end, back + last["speed_mps"] ** 2 / (2 * self.rules.emergency_decel_mps2))
        coming = sum(w["cleared"] and w["next_edge"] == target for w in self.vehicles)
        return end - coming * self.rules.place_m >= self.rules.room_m

    def on(self, edge, vehicles):
        """(position, vehicle) of all vehicles with a part on this lane, from the rear."""
        here = [(v["position_m"], v) for v in vehicles if v["edge"] == edge]
        tails = [v for v in vehicles if v["came_from"] == edge and v["position_m"] < self.rules.length_m]
        here += [(v["position_m"] + self.ways.block_m, v) for v in tails]
        return sorted(here, key=lambda pair: pair[0])

    def rear(self, edge, vehicles):
        here = self.on(edge, vehicles)
        return (here[0][1], here[0][0] - self.rules.length_m) if here else (None, inf)

    def ahead(self, v, vehicles):
        further = [(x, w) for x, w in self.on(v["edge"], vehicles) if x > v["position_m"]]
        return (further[0][1], further[0][0] - self.rules.length_m) if further else (None, inf)

    def stopping_speed(self, v):
        return self.safe(v["limit_m"] - v["position_m"], v["speed_mps"], 0.0, self.rules.stop_decel_mps2)

    def safe(self, gap, u, leader, b):
        dt = self.rules.dt_s
        return max(0.0, sqrt(max(0.0, 2 * b * gap + leader**2 - b * dt * u)) - b * dt / 2)

    def next_speed(self, v, vehicles):
        u, dt, b = v["speed_mps"], self.rules.dt_s, self.rules.emergency_decel_mps2
        choices = [self.stopping_speed(v), max(u, v["desired_speed_mps"])]
        leaders = [self.ahead(v, vehicles)]
        if v["cleared"]:
            last, back = self.rear(v["next_edge"], vehicles)
            leaders.append((last, back + self.ways.block_m))
        for leader, back in leaders:
            gap, speed = back - v["position_m"], leader["speed_mps"] if leader else 0.0
            choices += [u + self.idm(v, gap, speed) * dt, self.safe(gap, u, speed, b)]
        return max(min(choices), u - b * dt, 0.0)

    @staticmethod
    def idm(v, gap, leader):
        u, a = v["speed_mps"], v["max_accel_mps2"]
        wanted = u * v["headway_s"] + u * (u - leader) / (2 * sqrt(a * v["comfort_decel_mps2"]))
        star = v["min_gap_m"] + max(0.0, wanted)
        return a * (1 - (u / v["desired_speed_mps"]) ** 4 - (star / max(gap, 1e-3)) ** 2)
