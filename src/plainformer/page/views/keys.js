/** Arrow keys on a grid of rows and columns, of which one place has the focus. */

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Where a key goes; the page does not scroll by it then. Home and End go along the row; in a single row, the arrows up
 * and down go along it, too.
 * @param {KeyboardEvent} event
 * @param {[number, number]} from row and column
 * @param {[number, number]} size rows and columns
 * @param {1 | -1} sign -1 where columns run from right to left
 * @returns {[number, number] | null} null for other keys
 */
export function stepped(event, [row, column], [rows, columns], sign = 1) {
  const step = STEPS[event.key];
  if (!step && event.key !== "Home" && event.key !== "End") return null;
  event.preventDefault();
  if (!step) return [row, event.key === "Home" ? 0 : columns - 1];
  const [down, right] = rows === 1 ? [0, step[0] || step[1] * sign] : [step[0], step[1] * sign];
  return [held(row + down, rows), held(column + right, columns)];
}

function held(at, count) {
  return Math.max(0, Math.min(count - 1, at));
}
