"use strict";
// The map: streets and coverage are drawn once, vehicles in every frame.

const COLOURS = [
  ...["--paper", "--ink", "--muted", "--faint", "--street", "--cell"],
  ...["--sky", "--blue", "--green", "--orange", "--red", "--purple"],
];
const FLASH_MS = 1500; // of simulated time in which a loss stays visible, also if the CV already has a new order

class CarMap {
  constructor(data, cars, clock) {
    Object.assign(this, { data, cars, clock });
    this.canvas = document.getElementById("map");
    this.tip = document.getElementById("map-tip");
    this.context = this.canvas.getContext("2d");
    this.back = document.createElement("canvas");
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.resize());
    this.canvas.addEventListener("click", (event) => {
      clock.choose(this.carAt(event)?.vehicle ?? null);
    });
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.resize();
    clock.listen(() => this.draw());
  }

  resize() {
    const width = this.canvas.parentElement.clientWidth || 640;
    const [left, low, right, high] = this.data.bounds;
    const height = Math.round(Math.min((width * (high - low)) / (right - left), 0.85 * Math.max(innerHeight, 500)));
    const dense = Math.min(devicePixelRatio || 1, 2);
    const margin = 14;
    this.zoom = Math.min((width - 2 * margin) / (right - left), (height - 2 * margin) / (high - low));
    this.centre = [width / 2 - (this.zoom * (left + right)) / 2, height / 2 + (this.zoom * (low + high)) / 2];
    this.size = [width, height];
    for (const canvas of [this.canvas, this.back]) {
      canvas.width = width * dense;
      canvas.height = height * dense;
    }
    this.canvas.style.aspectRatio = `${width} / ${height}`;
    this.context.setTransform(dense, 0, 0, dense, 0, 0);
    const style = getComputedStyle(document.documentElement);
    this.colours = Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(name).trim()]));
    this.drawBack(dense);
    this.draw();
  }

  /** Pixels of a position in m. */
  at(x, y) {
    return [this.centre[0] + this.zoom * x, this.centre[1] - this.zoom * y];
  }

  drawBack(dense) {
    const context = this.back.getContext("2d");
    const { streets, radius } = this.data;
    context.setTransform(dense, 0, 0, dense, 0, 0);
    context.fillStyle = this.colours["--paper"];
    context.fillRect(0, 0, ...this.size);
    context.beginPath();
    context.arc(...this.at(0, 0), radius * this.zoom, 0, 2 * Math.PI);
    context.fillStyle = this.colours["--cell"];
    context.fill();
    context.beginPath();
    for (const [fromX, fromY, toX, toY] of streets ?? []) {
      context.moveTo(...this.at(fromX, fromY));
      context.lineTo(...this.at(toX, toY));
    }
    for (const { x, y } of streets ? [] : this.cars.tracks) {
      x.forEach((east, n) => context[n ? "lineTo" : "moveTo"](...this.at(east, y[n])));
    }
    context.strokeStyle = this.colours["--street"];
    context.lineWidth = streets ? Math.max(2, 9 * this.zoom) : 2;
    context.lineJoin = "round";
    context.stroke();
    context.beginPath();
    context.arc(...this.at(0, 0), radius * this.zoom, 0, 2 * Math.PI);
    context.setLineDash([6, 5]);
    context.lineWidth = 1.2;
    context.strokeStyle = this.colours["--muted"];
    context.stroke();
    context.setLineDash([]);
    this.drawStation(context);
    this.drawScale(context);
  }

  drawStation(context) {
    const [x, y] = this.at(0, 0);
    context.fillStyle = context.strokeStyle = this.colours["--ink"];
    context.lineWidth = 1.6;
    context.stroke(new Path2D(`M${x - 6} ${y + 9}L${x} ${y - 5}L${x + 6} ${y + 9}M${x - 3.5} ${y + 3.5}H${x + 3.5}`));
    for (const r of [5, 9]) {
      context.beginPath();
      context.arc(x, y - 5, r, -0.75, 0.75);
      context.moveTo(x + r * Math.cos(Math.PI - 0.75), y - 5 + r * Math.sin(Math.PI - 0.75));
      context.arc(x, y - 5, r, Math.PI - 0.75, Math.PI + 0.75);
      context.stroke();
    }
    context.font = "600 11px system-ui, sans-serif";
    context.fillText("gNB", x + 12, y + 9);
  }

  drawScale(context) {
    const metres = [50, 100, 200, 500, 1000, 2000].findLast((length) => length * this.zoom < this.size[0] / 4) ?? 50;
    const [x, y] = [14, this.size[1] - 12];
    context.fillStyle = this.colours["--muted"];
    context.fillRect(x, y, metres * this.zoom, 2);
    context.font = "11px system-ui, sans-serif";
    context.fillText(`${metres} m`, x, y - 5);
  }

  draw() {
    const { context, clock, cars, colours } = this;
    if (!this.zoom) return;
    context.drawImage(this.back, 0, 0, ...this.size);
    this.shown = cars.present(clock.time).map((car) => {
      const [px, py] = this.at(car.x, car.y);
      return { ...car, px, py, state: car.connected ? cars.state(car.vehicle, clock.time) : "outside" };
    });
    for (const car of this.shown) if (car.state === "uploading") this.drawBeam(car);
    const size = this.size[0] < 500 ? 5 : 6.5;
    const order = Object.keys(STATES);
    this.shown.sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
    for (const car of this.shown) drawMarker(context, car.state, car.px, car.py, size, colours);
    this.drawFlashes(size);
    const chosen = this.shown.find((car) => car.vehicle === clock.chosen);
    if (chosen) this.drawChosen(chosen, size);
  }

  /** The vehicles that are shown, for a CSV file. */
  table() {
    const named = (car) => (car.connected ? car.state : "not a CV");
    const rows = this.shown.map((car) => [car.vehicle, car.x, car.y, named(car)]);
    return [["vehicle", "x_m", "y_m", "state"], ...rows];
  }

  /** A line from an uploading CV to the gNB, as wide as its share of the pRBs if that is recorded. */
  drawBeam(car) {
    const radio = this.cars.radio(car.vehicle, this.clock.time);
    const { context } = this;
    context.beginPath();
    context.moveTo(car.px, car.py);
    context.lineTo(...this.at(0, 0));
    context.strokeStyle = this.colours["--blue"];
    context.globalAlpha = 0.55;
    context.lineWidth = radio ? 1 + (6 * radio.prbs) / this.data.prbs : 1.2;
    context.stroke();
    context.globalAlpha = 1;
  }

  drawFlashes(size) {
    const { context, cars, clock } = this;
    const last = lastUpTo(cars.lost, clock.time, (order) => order.ended);
    for (let n = last; n >= 0 && clock.time - cars.lost[n].ended < FLASH_MS; n -= 1) {
      const car = this.shown.find((one) => one.vehicle === cars.lost[n].cv);
      if (!car) continue;
      context.beginPath();
      context.arc(car.px, car.py, size + 7, 0, 2 * Math.PI);
      context.strokeStyle = this.colours["--red"];
      context.lineWidth = 2.5;
      context.stroke();
    }
  }

  drawChosen(car, size) {
    const { context, colours } = this;
    context.beginPath();
    context.arc(car.px, car.py, size + 5, 0, 2 * Math.PI);
    context.strokeStyle = colours["--ink"];
    context.lineWidth = 2;
    context.stroke();
    context.font = "600 12px system-ui, sans-serif";
    const text = `CV ${car.vehicle}`;
    const width = context.measureText(text).width;
    const right = car.px + size + 10 + width > this.size[0] - 4 ? -size - 10 - width : size + 9;
    context.lineWidth = 4;
    context.strokeStyle = colours["--paper"];
    context.strokeText(text, car.px + right, car.py - 8);
    context.fillStyle = colours["--ink"];
    context.fillText(text, car.px + right, car.py - 8);
  }

  /** The CV nearest to the pointer, if it is near enough to touch. */
  carAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const reach = event.pointerType === "touch" ? 26 : 16;
    const near = (this.shown ?? []).filter((car) => car.connected)
      .map((car) => [Math.hypot(car.px - x, car.py - y), car]).filter(([distance]) => distance <= reach);
    return near.sort((a, b) => a[0] - b[0])[0]?.[1];
  }

  point(event) {
    const car = this.carAt(event);
    this.tip.hidden = !car;
    this.canvas.classList.toggle("pointing", Boolean(car));
    if (!car) return;
    this.tip.textContent = `CV ${car.vehicle}: ${STATES[car.state].label}`;
    this.tip.style.left = `${Math.min(car.px + 12, this.size[0] - 160)}px`;
    this.tip.style.top = `${Math.max(car.py - 34, 4)}px`;
  }
}
