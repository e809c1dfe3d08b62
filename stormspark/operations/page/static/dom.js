// Makes and changes elements. Values become text or attributes, never HTML, so whatever they contain is only shown.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in PROPERTIES) element[PROPERTIES[name]] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const PROPERTIES = { value: "value", checked: "checked" };

export function h(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

export const $ = (id) => document.getElementById(id);

export function setText(node, text) {
  const wanted = text === null || text === undefined ? "" : String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

export function setClass(node, value) {
  if (node.getAttribute("class") !== value) node.setAttribute("class", value);
}

// Replaces the children of a node only if what they are made of has changed, so that focus and selection stay.
export function shown(node, content, make) {
  const key = JSON.stringify(content);
  if (node.shownContent === key) return;
  node.shownContent = key;
  node.replaceChildren(...[make(content)].flat().filter(Boolean));
}

// Keeps a row for each item. `columns` are {title, number, cell(item) -> text | node, wide}. A cell changes only if its text does.
export class Table {
  constructor(place, columns, key, options = {}) {
    this.columns = columns;
    this.key = key;
    this.rows = new Map();
    this.body = h("tbody");
    this.options = options;
    place.append(
      h("table", {},
        options.caption ? h("caption", { class: "muted" }, options.caption) : null,
        h("thead", {}, h("tr", {}, columns.map((one) => h("th", { scope: "col", class: one.number ? "number" : null }, one.title)))),
        this.body));
  }

  show(items) {
    const left = new Set(this.rows.keys());
    let before = null;
    for (const item of items) {
      const key = this.key(item);
      left.delete(key);
      let row = this.rows.get(key);
      if (!row) {
        row = this.columns.map((one, number) => h(number === 0 && !this.options.plain ? "th" : "td",
          { class: one.number ? "number" : number === 0 ? "name" : one.wide ? "wide" : null, scope: number === 0 && !this.options.plain ? "row" : null }));
        row.line = h("tr", {}, row);
        this.rows.set(key, row);
      }
      this.columns.forEach((one, number) => {
        const made = one.cell(item, row[number]);
        if (made === undefined) return;
        if (made instanceof Node) { if (row[number].firstChild !== made) row[number].replaceChildren(made); } else setText(row[number], made);
        if (one.look) setClass(row[number], [one.number ? "number" : "", one.look(item) || ""].join(" "));
      });
      if (this.options.look) setClass(row.line, this.options.look(item) || "");
      const next = before ? before.nextSibling : this.body.firstChild;
      if (next !== row.line) this.body.insertBefore(row.line, next);
      before = row.line;
    }
    for (const key of left) { this.rows.get(key).line.remove(); this.rows.delete(key); }
  }
}
