"""The server in a checkpoint: k, ω_k, what the scheme remembers, and the orders and updates under way.

With rounds nothing is under way between two rounds. Without rounds, requests are not saved: idle CVs ask again.
"""

from typing import Any, cast

from vefl_sim.core.state import State, Stateful, from_state, optional_state, state_of
from vefl_sim.learning.learner import Local, Start
from vefl_sim.learning.trees import plain
from vefl_sim.protocol.messages import OrderOutcome, Update
from vefl_sim.protocol.server.edge import EdgeServer
from vefl_sim.protocol.server.window import Window
from vefl_sim.schemes.observation import LastRound


class SavedServer:
    """Saves and restores a server."""

    def __init__(self, server: EdgeServer) -> None:
        self._server = server

    def state(self) -> State:
        """Everything that later rounds depend on."""
        server, pace, model = self._server, self._server.pace, self._server.model
        work = sorted(
            (vehicle.work for vehicle in server.coverage.in_coverage.values() if vehicle.work is not None),
            key=lambda work: work.order.number,
        )
        starts = {one.order.number: (one.order.version, one.start) for one in work}
        starts |= {one.outcome.order.number: (one.outcome.order.version, one.start) for one in pace.delivered}
        models = {version: start.model for version, start in starts.values() if version != model.version}
        return {
            "round": server.round,
            "last": state_of(server.last),
            "version": model.version,
            "model": model.learner.arrays_of(model.parameters),
            "scheme": optional_state(model.scheme),
            "memory": plain(model.scheme.memory),
            "coding": optional_state(model.coding),
            "broadcaster": optional_state(server.broadcaster),
            "models": {version: model.learner.arrays_of(earlier) for version, earlier in models.items()},
            "locals": {
                number: state_of(start.local) for number, (_, start) in starts.items() if start.local != Local()
            },
            "orders": pace.orders,
            "windows": state_of(server.windows),
            "delivered": state_of(pace.delivered),
            "resting": {cv: until_ns for cv, until_ns in pace.resting.items() if until_ns > server.env.now},
            "work": state_of(work),
        }

    def restore(self, state: State) -> None:
        """Restore the server from a checkpoint; orders resume by number, so simultaneous events keep their order."""
        server, pace, model = self._server, self._server.pace, self._server.model
        server.round, model.version = state["round"], state["version"]
        server.last = from_state(LastRound, state["last"])
        model.parameters = model.learner.model_of(state["model"])
        if state["scheme"] is not None:
            cast(Stateful, model.scheme).restore(state["scheme"])
        if state["memory"] is not None:
            if not isinstance(state["memory"], dict):
                raise TypeError("what the scheme remembers is not a dict")
            model.scheme.memory = state["memory"]
        for part, saved in ((model.coding, state["coding"]), (server.broadcaster, state["broadcaster"])):
            if part:
                part.restore(saved)
        models = {version: model.learner.model_of(arrays) for version, arrays in state["models"].items()}
        models[model.version] = model.parameters
        local = {number: Local(**saved) for number, saved in state["locals"].items()}

        def start(version: Any, number: int) -> Start:
            return Start(models[version], local.get(number, Local()))

        pace.orders, pace.resting = state["orders"], state["resting"]
        server.windows = from_state(list[Window], state["windows"], constants=server.planner.observer.constants)
        outcomes = [from_state(OrderOutcome, update["outcome"]) for update in state["delivered"]]
        pace.delivered = [Update(one, start(one.order.version, one.order.number)) for one in outcomes]
        vehicles = server.coverage.in_coverage
        for work in state["work"]:
            saved, vehicle = work["order"], vehicles[work["order"]["cv"]]
            order = vehicle.resume(work, start(saved["version"], saved["number"]))
            vehicle.start()
            server.expire(order)
        for vehicle in vehicles.values():
            if vehicle.work is None:
                vehicle.start()
