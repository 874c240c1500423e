"use strict";
// The simulated time that the replay shows, and the chosen CV; everybody who shows something listens to it.

class Clock {
  constructor(end) {
    this.end = end;
    this.time = 0;
    this.speed = 2;
    this.playing = false;
    this.chosen = null;
    this.listeners = [];
  }

  listen(listener) {
    this.listeners.push(listener);
    listener(this);
  }

  tell() {
    for (const listener of this.listeners) listener(this);
  }

  set(time) {
    this.time = Math.min(Math.max(time, 0), this.end);
    this.tell();
  }

  choose(cv) {
    this.chosen = cv;
    this.tell();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.time >= this.end) this.time = 0;
    this.playing = true;
    let before = null;
    const playing = (this.film = {}); // a pause and a play between two frames must not leave two loops
    const frame = (now) => {
      if (!this.playing || this.film !== playing) return;
      const passed = before === null ? 0 : Math.min(now - before, 250); // after a pause of the browser, no leap
      before = now;
      this.set(this.time + passed * this.speed);
      if (this.time >= this.end) this.pause();
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    this.tell();
  }

  pause() {
    this.playing = false;
    this.tell();
  }
}

const PLAY = "M3 1L14 8L3 15Z";
const PAUSE = "M3 1H6.5V15H3ZM9.5 1H13V15H9.5Z";

/** Buttons, slider and keys that move the clock. */
function wireTransport(clock, cars, unit) {
  const [play, slider, output] = ["play", "slider", "clock"].map((id) => document.getElementById(id));
  const { rounds } = cars;
  const toRow = (row) => clock.set(rounds.start[Math.min(Math.max(row, 0), rounds.start.length - 1)]);
  const back = () => toRow(cars.rowAt(clock.time) - (clock.time - rounds.start[cars.rowAt(clock.time)] < 500 ? 1 : 0));
  const forth = () => toRow(cars.rowAt(clock.time) + 1);
  slider.max = Math.floor(clock.end);
  play.addEventListener("click", () => clock.toggle());
  slider.addEventListener("input", () => clock.set(Number(slider.value)));
  document.getElementById("previous-round").addEventListener("click", back);
  document.getElementById("next-round").addEventListener("click", forth);
  document.getElementById("previous-round").setAttribute("aria-label", `Previous ${unit}`);
  document.getElementById("next-round").setAttribute("aria-label", `Next ${unit}`);
  document.getElementById("speed").addEventListener("change", (event) => (clock.speed = Number(event.target.value)));
  const chooser = document.getElementById("chooser");
  chooser.append(element("option", { value: "" }, "none"));
  chooser.append(...cars.cvs.map((cv) => element("option", { value: cv }, `${cv}`)));
  chooser.addEventListener("change", () => clock.choose(chooser.value === "" ? null : Number(chooser.value)));
  clock.listen(() => {
    document.getElementById("play-icon").setAttribute("d", clock.playing ? PAUSE : PLAY);
    play.setAttribute("aria-label", clock.playing ? "Pause" : "Play");
    slider.value = clock.time;
    chooser.value = clock.chosen ?? "";
    const text = `${unit} ${rounds.round[cars.rowAt(clock.time)]} · ${seconds(clock.time)}`;
    output.textContent = text;
    slider.setAttribute("aria-valuetext", text);
  });
  document.addEventListener("keydown", (event) => {
    const isOthers = event.target.closest(event.key === "Escape" ? "select" : "input, select, button, summary, a, svg");
    if (isOthers || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 5000 : 1000;
    const keys = {
      " ": () => clock.toggle(),
      ArrowRight: () => clock.set(clock.time + step),
      ArrowLeft: () => clock.set(clock.time - step),
      n: () => chooseNext(clock, cars, 1),
      p: () => chooseNext(clock, cars, -1),
      Escape: () => clock.choose(null),
    };
    const action = keys[event.key] ?? keys[event.key.toLowerCase()];
    const inReplay = event.target === document.body || event.target.closest("#replay");
    if (!action || !inReplay) return;
    event.preventDefault();
    action();
  });
}

/** Chooses the next or previous of the CVs that are in coverage now. */
function chooseNext(clock, cars, step) {
  const here = cars.cvs.filter((cv) => cars.inCoverage(cv, clock.time));
  if (!here.length) return;
  const place = here.indexOf(clock.chosen);
  clock.choose(here[place < 0 ? (step > 0 ? 0 : here.length - 1) : (place + step + here.length) % here.length]);
}
