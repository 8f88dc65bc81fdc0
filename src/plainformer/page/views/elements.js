/** Elements of HTML and SVG, made in one expression. Text is always text: nothing here reads markup. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} tag
 * @param {Record<string, any>} attributes `on` has listeners by their events, `style` properties of CSS (which a strict
 *   policy lets a script set), `data` the data attributes; null and false leave an attribute out, true sets it
 * @param {...(Node | string | number | null | false | Array)} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same, of SVG. @returns {SVGElement} */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  const { on = {}, style = {}, data = {}, ...plain } = attributes;
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  for (const [property, value] of Object.entries(style)) element.style.setProperty(property, value);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(plain))
    if (is_there(value)) element.setAttribute(name, value === true ? "" : value);
  element.append(...children.flat(Infinity).filter(is_there));
  return element;
}

function is_there(value) {
  return value !== null && value !== undefined && value !== false;
}

/** Another content for an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(is_there));
}
