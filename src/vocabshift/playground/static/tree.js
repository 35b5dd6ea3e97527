// What is known of one token: its text, id and bytes, and the tree of merges that builds it, or
// what stands in a tree's place. Owns how bytes that are no whole text are shown: in hex.
import { appendVisible } from "/tokens.js";

const number = new Intl.NumberFormat("en");
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function make(name, className, ...children) {
  const element = document.createElement(name);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

export function bytesOf(hex) {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

function hexOf(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
}

/** Runs of whole characters (strings) and of other bytes (arrays), in order. */
export function runsOf(bytes) {
  const runs = [];
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at];
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    let text = null;
    try {
      if (at + length <= bytes.length) text = utf8.decode(bytes.subarray(at, at + length));
    } catch {
      text = null;
    }
    const last = runs.at(-1);
    if (text !== null) {
      if (typeof last === "string") runs[runs.length - 1] = last + text;
      else runs.push(text);
      at += length;
    } else {
      if (Array.isArray(last)) last.push(lead);
      else runs.push([lead]);
      at += 1;
    }
  }
  return runs;
}

/** A token as a chip: text as it is shaped, the space visible, bytes without a character in hex. */
export function chip(node) {
  const element = make("bdi", "chip");
  const bytes = bytesOf(node.bytes);
  if (bytes.length === 0) element.append(make("b", "ct", node.token || "nothing"));
  for (const run of runsOf(bytes)) {
    if (Array.isArray(run)) {
      element.append(make("code", "raw", hexOf(run)));
      continue;
    }
    for (const part of run.split(/( )/)) {
      if (part === " ") element.append(make("span", "space", "␣"));
      else appendVisible(element, /^\p{M}/u.test(part) ? "◌" + part : part); // a sign needs a letter
    }
  }
  if (node.n_bytes > bytes.length) element.append(" …");
  return element;
}

function fact(name, ...value) {
  return make("div", "", make("dt", "", name), make("dd", "", ...value));
}

/** Everything about a token, `found` being the server's answer. */
export function describe(found, notes) {
  const root = found.nodes[0];
  const facts = make("dl", "facts");
  const bytes = bytesOf(root.bytes);
  const copy = make("button", "small", "copy");
  copy.type = "button";
  copy.addEventListener("click", () => navigator.clipboard.writeText(String(root.id)));
  facts.append(
    fact("token", chip(root)),
    fact("id", make("code", "", String(root.id)), " ", copy),
    fact(`${number.format(root.n_bytes)} ${root.n_bytes === 1 ? "byte" : "bytes"}`, make("code", "", hexOf(bytes) + (root.n_bytes > bytes.length ? " …" : ""))),
    fact("in the vocabulary", make("code", "", make("bdi", "", visible(root.token)))),
  );
  if (notes.length) facts.append(fact("in this text", notes.join(", ")));
  return make("div", "about", facts, built(found));
}

function visible(text) {
  const holder = document.createElement("span");
  appendVisible(holder, text);
  return holder;
}

function built(found) {
  const [root] = found.nodes;
  const says = (text) => make("p", "how", text);
  switch (found.how) {
    case "merges":
      break;
    case "byte":
      return says("No merge makes it: it is one of the pieces that everything is made of.");
    case "vocabulary":
      return says("No merges make it: a word that is in the vocabulary as a whole is taken as it is.");
    case "added":
      return says("An added token: it is cut out of the text before the model sees it.");
    case "unknown":
      return says("Stands for text that the vocabulary has nothing for.");
    case "score":
      return says(`Unigram: log probability ${found.score.toPrecision(6)}. The split of a text with the highest sum is taken.`);
    case "prefix": {
      const inside = found.prefix && root.token.startsWith(found.prefix);
      return says(
        inside
          ? `WordPiece: “${found.prefix}” marks that it goes on inside a word; the longest that fits is taken.`
          : "WordPiece: begins a word; the longest that fits is taken.",
      );
    }
  }
  const merges = found.nodes.filter((node) => node.left !== null).length;
  const title = make("h4", "", `Built by ${number.format(merges)} ${merges === 1 ? "merge" : "merges"}`);
  const note = make("p", "how", "A lower rank was learned earlier and is applied first.");
  return make("div", "", title, note, make("ul", "tree", branch(found.nodes, 0)));
}

function branch(nodes, index) {
  const node = nodes[index];
  const row = [chip(node)];
  if (node.rank !== null) row.push(make("span", "rank", `rank ${number.format(node.rank)}`));
  row.push(make("span", "id", `id ${node.id}`));
  if (node.is_cut) row.push(make("span", "id", "made of more, not shown"));
  if (node.left === null) return make("li", "leaf", make("span", "row", ...row));
  const details = make("details", "", make("summary", "row", ...row));
  const runs = runsOf(bytesOf(node.bytes));
  const isOneCharacter = runs.length === 1 && typeof runs[0] === "string" && [...runs[0]].length === 1;
  details.open = index === 0 || (!isOneCharacter && (runs.length > 1 || typeof runs[0] === "string"));
  details.append(make("ul", "", branch(nodes, node.left), branch(nodes, node.right)));
  return make("li", "", details);
}
