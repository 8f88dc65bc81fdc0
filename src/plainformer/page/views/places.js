/** The window on the places of a long text: as many as there is room for, the one that is explained among them. */

import { h } from "./elements.js";

export class Places {
  /**
   * @param {import("./store.js").Store} store
   * @param {object} of
   * @param {HTMLElement} of.frame of the picture, whose width says how many there is room for
   * @param {number} of.width of a place, in pixels
   * @param {number} [of.side] pixels that are taken by something else
   * @param {string} [of.noun] what stands at the places
   * @param {0 | 1} [of.base] the number of the first
   * @param {() => void} of.draw called when there is room for more or less
   */
  constructor(store, { frame, width, side = 0, noun = "places", base = 0, draw }) {
    Object.assign(this, { store, frame, width, side, noun, base, first: 0, all: [] });
    const button = (sign, name, step) =>
      h("button", { "aria-label": `${name} ${noun}`, on: { click: () => this.move(step) } }, sign);
    this.buttons = [button("‹", "Earlier", -1), button("›", "Later", 1)];
    this.said = h("span", { role: "status" });
    this.element = h("div", { class: "places", role: "group", "aria-label": `Which ${noun} are shown` });
    this.element.append(this.buttons[0], this.said, this.buttons[1]);
    new ResizeObserver(() => this.room === this.drawn || draw()).observe(frame);
  }

  get room() {
    return Math.max(2, Math.floor((this.frame.clientWidth - this.side) / this.width));
  }

  /**
   * Those that are shown, and says which.
   * @param {number[]} all places, in their order
   * @returns {number[]}
   */
  of(all) {
    const [room, at] = [this.room, this.nearest(all)];
    if (at < this.first || at >= this.first + room) this.first = at - Math.floor(room / 2);
    this.first = Math.max(0, Math.min(this.first, all.length - room));
    Object.assign(this, { all, drawn: room });
    const shown = all.slice(this.first, this.first + room);
    this.element.hidden = shown.length === all.length;
    const last = this.first + shown.length;
    const [from, to, whole] = [this.first + this.base, last - 1 + this.base, all.length - 1 + this.base];
    this.said.textContent = `${this.noun} ${from} to ${to} of ${this.base} to ${whole}`;
    this.buttons[0].disabled = this.first === 0;
    this.buttons[1].disabled = last === all.length;
    return shown;
  }

  /** Where in a list of places the one is that is explained, or the next after it. */
  nearest(all) {
    const at = all.findIndex((place) => place >= this.store.get("place"));
    return at < 0 ? Math.max(0, all.length - 1) : at;
  }

  /** To the places before or behind those that are shown. @param {1 | -1} step */
  move(step) {
    const at = step < 0 ? this.first - 1 - Math.floor((this.drawn - 1) / 2) : this.first + this.drawn;
    return this.store.set({ place: this.all[Math.max(0, Math.min(at, this.all.length - 1))] });
  }

  /** To the place beside one that is shown, where there is one. @param {number} place @param {1 | -1} step */
  beyond(place, step) {
    const next = this.all[this.all.indexOf(place) + step];
    if (next !== undefined) return this.store.set({ place: next });
  }
}
