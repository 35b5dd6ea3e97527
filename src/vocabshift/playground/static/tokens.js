// Draws tokens: the markup of vocabshift's report/token_html.py (classes, stripes, visible
// controls), from what the server found. Owns which elements a text becomes, and that elements of
// lines which did not change stay. Text is only ever set as text.

const N_COLOURS = 6;
const MOST_STRIPES = 12;
const SUPERWORD = 1, CUTS_CHARACTER = 2, SPECIAL = 8, UNKNOWN = 16;

const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
const SHOWN = new Map([["\n", "↵"], ["\t", "⇥"], ["\u2028", "↵"], ["\u2029", "¶"], ["\x7f", "␡"]]);

/** The visible name of a character that would be invisible or change the text around it, or "". */
export function nameOf(character) {
  if (character === "\u200c" || character === "\u200d" || !HIDDEN.test(character)) return "";
  if (SHOWN.has(character)) return SHOWN.get(character);
  const code = character.codePointAt(0);
  if (code < 32) return String.fromCharCode(0x2400 + code);
  return "U+" + code.toString(16).toUpperCase().padStart(4, "0");
}

/** Append text to an element, hidden characters by name. */
export function appendVisible(parent, text) {
  if (!HIDDEN.test(text)) {
    parent.append(text);
    return;
  }
  let plain = "";
  for (const character of text) {
    const name = nameOf(character);
    if (!name) {
      plain += character;
      continue;
    }
    if (plain) parent.append(plain);
    plain = "";
    const mark = document.createElement("b");
    mark.className = "ct";
    mark.textContent = name;
    parent.append(mark);
  }
  if (plain) parent.append(plain);
}

/** Where the text may be divided, from the bytes of UTF-8 to the units of a JavaScript string. */
export class Ruler {
  constructor(text, borders) {
    this.text = text;
    const unitAt = [0];
    for (let unit = 0; unit < text.length; ) {
      const code = text.codePointAt(unit);
      const bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
      unit += code < 0x10000 ? 1 : 2;
      for (let i = 1; i < bytes; i++) unitAt.push(-1);
      unitAt.push(unit);
    }
    this.unitAt = Int32Array.from(unitAt);
    this.nBytes = unitAt.length - 1;
    this.before = new Int32Array(this.nBytes + 1); // the border at or before each byte
    this.after = new Int32Array(this.nBytes + 1);
    const isBorder = new Uint8Array(this.nBytes + 1);
    for (const at of borders) isBorder[at] = 1;
    isBorder[0] = isBorder[this.nBytes] = 1;
    this.lineEnds = [];
    for (let byte = 0; byte < this.nBytes; byte++) {
      if (text[unitAt[byte]] !== "\n" || unitAt[byte] < 0) continue;
      isBorder[byte] = isBorder[byte + 1] = 1;
      this.lineEnds.push(byte + 1);
    }
    for (let byte = 0, last = 0; byte <= this.nBytes; byte++) this.before[byte] = last = isBorder[byte] ? byte : last;
    for (let byte = this.nBytes, last = byte; byte >= 0; byte--) this.after[byte] = last = isBorder[byte] ? byte : last;
  }

  slice(start, end) {
    return this.text.slice(this.unitAt[start], this.unitAt[end]);
  }
}

/** The starts of tokens, where the server leaves them out: each begins where one ends. */
export function startsOf(found) {
  return found.starts ?? [0, ...found.ends.slice(0, -1)].slice(0, found.ends.length);
}

/**
 * Lines of elements. Each line: {base, key, parts}, where base is its first token and a part is
 * [classes, text, tokens counted from base, whether the text is only the token's name].
 */
export function layOut(ruler, found, isShared) {
  const { ends, marks, ids, spelled } = found;
  const starts = startsOf(found);
  const isEdge = new Uint8Array(ruler.nBytes + 1);
  isEdge[0] = isEdge[ruler.nBytes] = 1;
  for (const at of ruler.lineEnds) isEdge[at] = 1;
  for (let i = 0; i < ends.length; i++) {
    for (const at of [starts[i], ends[i]]) isEdge[ruler.before[at]] = isEdge[ruler.after[at]] = 1;
  }
  const lines = [];
  let line = null, first = 0, start = 0, nextLineEnd = 0;

  const add = (from, to, tokens) => {
    line ??= { base: tokens[0] ?? first, parts: [] };
    const near = tokens.map((token) => token - line.base);
    const text = from < to ? ruler.slice(from, to) : spelled[ids[tokens[0]]];
    line.parts.push([classesOf(from, to, tokens, near), text, near, from === to]);
  };
  const classesOf = (from, to, tokens, near) => {
    if (tokens.length === 0) return "no";
    const one = tokens.length === 1;
    const colour = near[0] % N_COLOURS;
    const names = [one ? "k" + colour : `x${colour}-${Math.min(tokens.length, MOST_STRIPES)}`];
    let all = 0;
    for (const token of tokens) all |= marks[token];
    if (starts[tokens[0]] < from) names.push("on");
    if (from === to) names.push("z");
    if (all & SUPERWORD) names.push("sw");
    if (!one) names.push(all & CUTS_CHARACTER ? "cc" : "cs");
    if (all & SPECIAL) names.push("sp");
    if (all & UNKNOWN) names.push("un");
    if (isShared && tokens.every(isShared)) names.push("same");
    return names.join(" ");
  };

  for (let end = 1; end <= ruler.nBytes; end++) {
    if (!isEdge[end]) continue;
    while (first < ends.length && ends[first] <= start) {
      if (starts[first] === ends[first]) add(start, start, [first]);
      first++;
    }
    const tokens = [];
    for (let i = first; i < ends.length && starts[i] < end; i++) {
      if (ends[i] > start || (starts[i] === ends[i] && starts[i] > start)) tokens.push(i);
    }
    // A token without text inside of an element belongs to it, and is not drawn again.
    while (first < ends.length && ends[first] <= end && tokens.includes(first)) first++;
    add(start, end, tokens);
    start = end;
    if (ruler.lineEnds[nextLineEnd] === end) {
      nextLineEnd++;
      lines.push(line);
      line = null;
    }
  }
  for (; first < ends.length; first++) if (starts[first] === ends[first]) add(start, start, [first]);
  if (line) lines.push(line);
  for (const one of lines) one.key = JSON.stringify(one.parts);
  return lines;
}

/** Show lines in a view; elements of what is as before stay where they are. */
export function draw(view, lines) {
  const old = view.lines ?? [];
  const [head, tail] = alike(old, lines, (one, other) => one.key === other.key);
  const oldEnd = old.length - tail, end = lines.length - tail;
  const fresh = document.createDocumentFragment();
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    if (i < head) line.element = old[i].element;
    else if (i >= end) line.element = old[oldEnd + i - end].element;
    else if (i < oldEnd) patch((line.element = old[i].element), line.parts);
    else {
      line.element = document.createElement("p");
      line.element.className = "tl";
      line.element.dir = "auto";
      patch(line.element, line.parts);
      fresh.append(line.element);
    }
    line.element.base = line.base;
  }
  for (let i = Math.max(end, head); i < oldEnd; i++) old[i].element.remove();
  view.insertBefore(fresh, tail ? lines[end].element : null);
  view.lines = lines;
}

/** How many items two lists begin with, and end with, alike. */
function alike(old, fresh, isSame) {
  const most = Math.min(old.length, fresh.length);
  let head = 0, tail = 0;
  while (head < most && isSame(old[head], fresh[head])) head++;
  while (tail < most - head && isSame(old.at(-1 - tail), fresh.at(-1 - tail))) tail++;
  return [head, tail];
}

/** Make the elements of a line those of `parts`. */
function patch(paragraph, parts) {
  const old = paragraph.parts ?? [];
  const isSame = (one, other) => one[1] === other[1] && one[3] === other[3];
  const [head, tail] = alike(old, parts, isSame);
  const children = [...paragraph.children];
  const update = (element, [classes, , tokens]) => {
    if (element.className !== classes) element.className = classes;
    element.tokens = tokens;
  };
  for (let i = head; i < old.length - tail; i++) children[i].remove();
  const fresh = document.createDocumentFragment();
  for (let i = head; i < parts.length - tail; i++) {
    const element = document.createElement("i");
    update(element, parts[i]);
    appendVisible(element, parts[i][1]);
    fresh.append(element);
  }
  paragraph.insertBefore(fresh, tail ? children[old.length - tail] : null);
  for (let i = 0; i < head; i++) update(children[i], parts[i]);
  for (let i = 1; i <= tail; i++) update(children.at(-i), parts.at(-i));
  paragraph.parts = parts;
}

/** The elements that a token has a part in. */
export function elementsOf(view, token) {
  const found = [];
  const lines = view.lines ?? [];
  let low = 0, high = lines.length; // the first line that begins behind the token
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle].base <= token) low = middle + 1;
    else high = middle;
  }
  for (let number = low - 1; number >= 0; number--) {
    const { base, element } = lines[number];
    const here = [...element.children].filter((child) => child.tokens.includes(token - base));
    if (here.length === 0) break; // a token has no gaps
    found.unshift(...here);
  }
  return found;
}

/** The token under a pointer: in a striped element, that of the stripe. */
export function tokenAt(event) {
  const element = event.target instanceof Element ? event.target.closest(".view .tl > i") : null;
  if (!element || element.tokens.length === 0) return null;
  const paragraph = element.parentElement;
  let stripe = 0;
  if (element.tokens.length > 1) {
    const box = element.getBoundingClientRect();
    const part = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 0.999);
    const isRtl = getComputedStyle(paragraph).direction === "rtl";
    const stripes = Math.min(element.tokens.length, MOST_STRIPES);
    stripe = Math.floor((isRtl ? 1 - part - 1e-9 : part) * stripes);
  }
  return paragraph.base + element.tokens[stripe];
}
