"""The server's inbox: CVs ask for orders there and turn their updates in, without knowing the server."""

from typing import NamedTuple

from simpy import Event, Store

from vefl_sim.learning.learner import Start
from vefl_sim.protocol.instants import NanosecondEnvironment, Signal
from vefl_sim.protocol.messages import TrainOrder, Update


class Assignment(NamedTuple):
    """An order for a CV that has asked for one."""

    order: TrainOrder
    event: int  # number of its `training_ordered` event
    start: Start


class Refusal(NamedTuple):
    """A CV gets no order now."""

    until: Event  # when it may ask again


class Inbox:
    """What CVs have sent to the server and it has not dealt with yet."""

    def __init__(self, env: NanosecondEnvironment) -> None:
        self._env = env
        self.requests: dict[int, Event] = {}
        """CV -> its request for an order. The value of the answer is an Assignment or a Refusal."""
        self.requested = Signal(env)
        self.updates = Store(env)

    def request(self, cv: int) -> Event:
        """Ask for an order; the value of the event is the answer."""
        self.requests[cv] = request = self._env.event()
        self.requested.send()
        return request

    def withdraw(self, cv: int) -> None:
        """Withdraw the request of a CV that has left, if it has one."""
        self.requests.pop(cv, None)

    def turn_in(self, update: Update) -> None:
        """Leave an update, delivered or lost, for the server."""
        self.updates.put(update)
