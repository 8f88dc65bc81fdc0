/**
 * Cells of a picture: a text on a ground that a probability shades. A grid of them is one stop of the tab key; arrow
 * keys go from cell to cell, Enter and space press one.
 */

import { fill, h, s } from "./elements.js";

export const CELL = { width: 92, height: 25 }; // pixels; a finger needs 24
const DARKEST = 0.5; // opacity at probability 1, on which text can still be read
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * @param {object} of
 * @param {[number, number]} of.at column and row in the grid: numbers that stay the same when it is drawn again
 * @param {[number, number, number, number]} of.box x, y, width and height in pixels
 * @param {string} of.text
 * @param {string} [of.note] at its right
 * @param {number} [of.shade] 0 to 1
 * @param {string} of.said the whole of it in words: for those who point at it, or listen
 * @param {string} [of.kind] further classes
 * @param {object} [of.data]
 * @param {(() => void) | null} [of.press]
 * @returns {SVGElement}
 */
export function cell({ at, box, text, note = "", shade = 0, said, kind = "", data = {}, press = null }) {
  const [x, y, width, height] = box;
  const ground = { x: x + 1, y: y + 1, width: width - 2, height: height - 2, rx: 3 };
  const middle = y + height / 2 + 4;
  const room = width - 10 - (note && text_width(note) + 4);
  return pressed(
    s(
      "g",
      { class: `cell ${kind}`, "aria-label": said, data: { ...data, cell: at.join(" ") } },
      s("title", {}, said),
      s("rect", { class: "ground", ...ground }),
      shade > 0 && s("rect", { class: "shade", ...ground, "fill-opacity": (shade * DARKEST).toFixed(3) }),
      s("text", { x: x + 5, y: middle }, fitted(text, room)),
      note && s("text", { x: x + width - 5, y: middle, class: "note", "text-anchor": "end" }, note),
    ),
    press,
  );
}

/** An element of a picture as a button, or, where nothing is to be pressed, as something to be looked at. */
export function pressed(element, press) {
  element.setAttribute("role", press ? "button" : "img");
  element.setAttribute("tabindex", -1);
  if (!press) return element;
  element.classList.add("press");
  element.addEventListener("click", press);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    press();
  });
  return element;
}

/** The frame of a picture of cells, which keeps the focus where it was when the picture is drawn anew. */
export class Grid {
  /** @param {(column: number) => Promise<void> | void} [beyond] what is done where an arrow leaves the picture */
  constructor(beyond = () => {}) {
    this.beyond = beyond;
    this.frame = h("div", { class: "cells", on: { keydown: (event) => this.step(event) } });
    this.frame.addEventListener("focusin", ({ target }) => this.stop(target.closest("[data-cell]")));
  }

  /** @returns {SVGElement | null} what is shown */
  get picture() {
    return this.frame.querySelector("svg");
  }

  /** @param {SVGElement} picture @param {string} [first] where the tab key stops, "column row" */
  show(picture, first) {
    const focused = this.frame.contains(document.activeElement) ? document.activeElement.dataset.cell : undefined;
    fill(this.frame, picture);
    const stop = this.find(focused) ?? this.find(this.last) ?? this.find(first) ?? picture.querySelector("[data-cell]");
    if (stop === null) return;
    this.stop(stop);
    if (focused !== undefined) stop.focus({ preventScroll: true });
  }

  find(key) {
    return key === undefined ? null : this.frame.querySelector(`[data-cell="${key}"]`);
  }

  stop(element) {
    if (element === null) return;
    for (const one of this.frame.querySelectorAll('[tabindex="0"]')) one.setAttribute("tabindex", -1);
    element.setAttribute("tabindex", 0);
    this.last = element.dataset.cell;
  }

  async step(event) {
    const [step, from] = [STEPS[event.key], event.target.closest("[data-cell]")];
    if (step === undefined || from === null) return;
    event.preventDefault();
    const [column, row] = from.dataset.cell.split(" ").map(Number);
    const next = [column + step[0], row + step[1]].join(" ");
    if (step[0] && this.find(next) === null) await this.beyond(column, step[0]);
    (this.find(next) ?? this.nearest(column, ...step))?.focus();
  }

  /** The cell in the next column that there is, above the row that it does not have. */
  nearest(column, x) {
    if (x === 0) return null;
    const columns = Array.from(this.frame.querySelectorAll("[data-cell]"), ({ dataset }) => dataset.cell.split(" ")[0]);
    const beyond = [...new Set(columns.map(Number))].filter((one) => (one - column) * x > 0);
    const next = beyond.sort((one, other) => (one - other) * x)[0];
    return this.find(`${next} 0`);
  }
}

let pen = null;
const known = new Map();

/** @param {string} text @returns {number} pixels that it takes in a picture */
export function text_width(text) {
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

/** As much of a text as fits into so many pixels. */
export function fitted(text, room) {
  const key = `${Math.floor(room)} ${text}`;
  if (!known.has(key)) known.set(key, cut(text, room));
  return known.get(key);
}

function cut(text, room) {
  if (text_width(text) <= room) return text;
  const letters = Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
  while (letters.length > 1 && text_width(`${letters.join("")}…`) > room) letters.pop();
  return `${letters.join("")}…`;
}
