"use strict";
// Where the vehicles are, and what the CVs do, at any time of the run.

class Cars {
  constructor(data) {
    this.rounds = data.rounds;
    this.slotMs = data.slot_ms;
    this.tracks = data.tracks.map(unpackedTrack);
    this.grid = data.grid;
    this.byVehicle = new Map();
    for (const track of this.tracks) addTo(this.byVehicle, track.vehicle, track);
    this.orders = rowsOf(data.orders);
    this.decisions = new Map();
    for (const decision of [...this.orders, ...rowsOf(data.refusals)].sort((a, b) => a.at - b.at)) {
      addTo(this.decisions, decision.cv, decision);
    }
    this.visits = new Map(data.visits.map(([cv, ...times]) => [cv, times]));
    this.why = new Map(data.why.map(([cv, round, text]) => [`${cv}/${round}`, text]));
    this.uploads = data.uploads;
    this.bins = new Map(Object.entries(data.uploads.cvs).map(([cv, flat]) => [Number(cv), unpackedBins(flat)]));
    this.lost = this.orders.filter((order) => order.state === "lost").sort((a, b) => a.ended - b.ended);
    this.cvs = [...this.visits.keys()].sort((a, b) => a - b);
  }

  /** The index of the round at a time. */
  rowAt(time) {
    return Math.max(lastUpTo(this.rounds.start, time), 0);
  }

  /** The position [x, y] in m of a vehicle, null where it is not on the streets. */
  place(vehicle, time) {
    const tracks = this.byVehicle.get(vehicle) ?? [];
    const track = tracks.find((part) => part.times[0] <= time && time <= part.times.at(-1));
    return track ? placeOn(track, time, this.grid) : null;
  }

  /** All vehicles on the streets, as {vehicle, connected, x, y}. */
  present(time) {
    const found = [];
    for (const track of this.tracks) {
      if (track.times[0] > time || track.times.at(-1) < time) continue;
      const [x, y] = placeOn(track, time, this.grid);
      found.push({ vehicle: track.vehicle, connected: track.connected, x, y });
    }
    return found;
  }

  inCoverage(cv, time) {
    return lastUpTo(this.visits.get(cv) ?? [], time) % 2 === 0;
  }

  /** The last decision about a CV, whatever its age. */
  decision(cv, time) {
    const all = this.decisions.get(cv) ?? [];
    return all[lastUpTo(all, time, (decision) => decision.at)];
  }

  /** The state of a CV; how an order ended is shown until the end of the round in which it ended. */
  state(cv, time) {
    const decision = this.decision(cv, time);
    const rest = this.inCoverage(cv, time) ? "idle" : "outside";
    if (!decision) return rest;
    const isOrder = "ended" in decision;
    if (isOrder && time < (decision.ended ?? Infinity)) {
      if (time < (decision.trained ?? Infinity)) return "training";
      return time < (decision.started ?? Infinity) ? "waiting" : "uploading";
    }
    const until = this.rounds.end[this.rowAt(decision.ended ?? decision.at)] ?? Infinity;
    return time < until ? decision.state : rest;
  }

  /** pRBs and Mbit/s of a CV in the slots of this bin that serve it, null if they are not recorded. */
  radio(cv, time) {
    const { kind } = this.uploads;
    const unserved = kind === "uploads" || kind === "full" ? { prbs: 0, mbps: 0 } : null;
    const bins = this.bins.get(cv);
    if (!bins) return unserved;
    const bin = Math.floor(time / this.uploads.bin_ms);
    const index = lastUpTo(bins.numbers, bin);
    return index >= 0 && bins.numbers[index] === bin ? { prbs: bins.prbs[index], mbps: bins.mbps[index] } : unserved;
  }

  /** Mean rate of an upload in Mbit/s over the slots that it used. */
  meanRate(order) {
    return order.slots ? order.bits / (order.slots * this.slotMs * 1000) : null;
  }
}

function addTo(map, key, item) {
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(item);
}

/** A track from its number, whether it is a CV, and all times, x, y and speeds, each as differences. */
function unpackedTrack([vehicle, connected, ...steps]) {
  const count = steps.length / 4;
  const column = (place, unit) => {
    let value = 0;
    return Float64Array.from(steps.slice(place * count, (place + 1) * count), (step) => (value += step) * unit);
  };
  const [times, x, y, speed] = [column(0, 1), column(1, 0.1), column(2, 0.1), column(3, 0.1)];
  return { vehicle, connected: connected === 1, times, x, y, speed };
}

/** The position on a track: from row to row the speed changes evenly, and on a grid the way leads over the corner. */
function placeOn({ times, x, y, speed }, time, grid) {
  const n = lastUpTo(times, time);
  if (n >= times.length - 1) return [x[n], y[n]];
  const s = (time - times[n]) / (times[n + 1] - times[n]);
  const both = speed[n] + speed[n + 1];
  const share = both > 0 ? (s * (2 * speed[n] + s * (speed[n + 1] - speed[n]))) / both : s;
  const [east, north] = [x[n + 1] - x[n], y[n + 1] - y[n]];
  if (!grid || Math.min(Math.abs(east), Math.abs(north)) < 0.25) return [x[n] + share * east, y[n] + share * north];
  const driven = share * (Math.abs(east) + Math.abs(north));
  const street = y[n] / grid.block + grid.blocks[1] / 2; // a whole number on a street along x
  const alongX = Math.abs(street - Math.round(street)) * grid.block < 0.1;
  const part = (first, second) => [Math.min(driven / first, 1), Math.max((driven - first) / second, 0)];
  const [first, second] = alongX ? part(Math.abs(east), Math.abs(north)) : part(Math.abs(north), Math.abs(east));
  return alongX ? [x[n] + first * east, y[n] + second * north] : [x[n] + second * east, y[n] + first * north];
}

function unpackedBins(flat) {
  const bins = { numbers: [], prbs: [], mbps: [] };
  let number = 0;
  for (let n = 0; n < flat.length; n += 3) {
    bins.numbers.push((number += flat[n]));
    bins.prbs.push(flat[n + 1]);
    bins.mbps.push(flat[n + 2]);
  }
  return bins;
}
