/** Buttons as a picture that can be saved: what a view shows that is no picture itself. */

import { fill, s } from "./elements.js";

const EDGE = 4; // pixels around them

/**
 * @param {SVGElement} copy in the view, whose styles it takes; it is not seen there
 * @param {Element[]} shown buttons, and headings, which have no ground
 * @returns {SVGElement} `copy`, with a box for each where it stands in the page, those that are scrolled away as well
 */
export function copied(copy, shown) {
  const boxes = shown.map((one) => one.getBoundingClientRect());
  const edge = (name, of) => of(...boxes.map((box) => box[name]));
  const [left, top] = [edge("left", Math.min) - EDGE, edge("top", Math.min) - EDGE];
  const [width, height] = [edge("right", Math.max) - left + EDGE, edge("bottom", Math.max) - top + EDGE];
  copy.setAttribute("viewBox", `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`);
  const drawn = shown.map((one, at) => {
    const { x, y, width, height } = boxes[at];
    const text = { x: x - left + width / 2, y: y - top + height / 2 + 4, "text-anchor": "middle" };
    const kind = { true: "ground pressed", false: "ground unpressed" }[one.getAttribute("aria-pressed")] ?? "ground";
    const ground = { class: kind, x: x - left, y: y - top, width, height, rx: 4 };
    return [one.tagName === "BUTTON" && s("rect", ground), s("text", text, one.textContent)];
  });
  fill(copy, drawn);
  return copy;
}
