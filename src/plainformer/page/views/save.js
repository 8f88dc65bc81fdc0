/** A picture of a view as an SVG file, which looks as on the page wherever it is opened. */

const PAINTED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity"];
const WRITTEN = ["font-size", "font-family", "font-weight", "text-anchor", "dominant-baseline"];

/**
 * @param {SVGElement} drawn in the page
 * @returns {string} the file: styles of the page are written out as attributes
 */
export function svg_text(drawn) {
  const copy = drawn.cloneNode(true);
  const [from, to] = [[drawn, ...drawn.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((element, at) => {
    const style = getComputedStyle(element);
    const names = element.tagName === "text" || element.tagName === "tspan" ? [...PAINTED, ...WRITTEN] : PAINTED;
    for (const name of names) to[at].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex", "data-token"]) to[at].removeAttribute(name);
  });
  const { width, height } = drawn.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** @param {SVGElement} drawn @param {string} name of the file, without its ending */
export function save_svg(drawn, name) {
  const url = URL.createObjectURL(new Blob([svg_text(drawn)], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: `${name}.svg` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
