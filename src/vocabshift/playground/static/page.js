// The page: sends the text as it is typed, one request at a time and always the latest, and shows
// what comes back. Owns the panels and what is selected in them; tokens.js draws, tree.js explains.
import { Ruler, draw, elementsOf, layOut, startsOf, tokenAt } from "/tokens.js";
import { chip, describe } from "/tree.js";

const $ = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const MARKS = [[1, "superword"], [2, "tears a character"], [4, "cuts a syllable"], [8, "special"], [16, "unknown"]];
const field = $("text");
const encoder = new TextEncoder();
const tokens = new Map(); // answers of /api/token

let start = { tokenizers: [], samples: [], most_bytes: 0 };
let panels = [];
let last = null; // the latest answer
let isBusy = false, isWaiting = false, timer = 0;

async function ask(path, options) {
  const answer = await fetch(path, options);
  const body = await answer.json().catch(() => ({ error: `the server answers ${answer.status}` }));
  if (!answer.ok) throw new Error(body.error);
  return body;
}

function say(message) {
  $("message").textContent = message;
  $("message").hidden = !message;
}

function make(name, className, ...children) {
  const element = document.createElement(name);
  element.className = className;
  element.append(...children);
  return element;
}

// One request at a time: what is typed meanwhile is sent when the answer is there.
function changed() {
  clearTimeout(timer);
  timer = setTimeout(send, field.value.length > 5000 ? 80 : 10);
}

async function send() {
  if (isBusy) {
    isWaiting = true;
    return;
  }
  isBusy = true;
  try {
    const body = JSON.stringify({ text: field.value.toWellFormed(), parse_special: $("special").checked });
    if (encoder.encode(body).length > start.most_bytes) {
      throw new Error(`The text is too long for this page, which takes ${number.format(start.most_bytes)} bytes; for files there is: vocabshift evaluate`);
    }
    const headers = { "Content-Type": "application/json" };
    last = await ask("/api/tokenize", { method: "POST", headers, body });
    say("");
    show();
  } catch (error) {
    say(error instanceof TypeError ? "The server does not answer. Is “vocabshift serve” still running?" : error.message);
  } finally {
    isBusy = false;
    if (isWaiting) {
      isWaiting = false;
      send();
    }
  }
}

function show() {
  const facts = [
    `${number.format(last.n_characters)} characters`,
    `${number.format(last.n_bytes)} bytes`,
    `${number.format(last.n_words)} words`,
  ];
  if (!last.is_whole) facts.push(`the first ${number.format(last.shown.length)} are shown, all are counted`);
  if (last.n_surrogates) facts.push(`${number.format(last.n_surrogates)} lone surrogates shown as U+FFFD`);
  $("counts").textContent = facts.join(" · ");
  const ruler = new Ruler(last.shown, last.borders);
  const isShared = $("differences").checked && panels.length > 1 ? sharedSpans(last.tokenizers) : null;
  const most = Math.max(1, ...last.tokenizers.map((found) => found.n_tokens));
  const fewest = Math.min(...last.tokenizers.filter((found) => !found.lost).map((found) => found.n_tokens));
  panels.forEach((panel, i) => {
    const found = last.tokenizers[i];
    panel.found = found;
    panel.figures(found, last, most, fewest);
    draw(panel.view, layOut(ruler, found, isShared?.[i]));
    panel.reselect();
    if (panel.ids.open) panel.fillIds();
  });
  document.body.dataset.ready = String(Number(document.body.dataset.ready ?? 0) + 1);
}

/** For each tokenizer, whether a token stands for a part of the text that is a token in all. */
function sharedSpans(all) {
  const counts = new Map();
  const keys = all.map((found) => {
    const starts = startsOf(found);
    return found.ends.map((end, i) => starts[i] + "-" + end);
  });
  for (const own of keys) for (const key of new Set(own)) counts.set(key, (counts.get(key) ?? 0) + 1);
  return keys.map((own) => (token) => counts.get(own[token]) === all.length);
}

class Panel {
  constructor(facts, index) {
    this.index = index;
    this.name = facts.name;
    this.selected = null;
    this.found = null;
    const title = make("h2", "", make("bdi", "", facts.name));
    title.id = `panel-${index}`;
    const kind = make("p", "kind", `${facts.kind} · ${number.format(facts.vocab_size)} in the vocabulary`);
    this.total = make("output", "total", "0");
    this.bar = make("div", "bar-of", make("span", ""));
    this.rates = make("dl", "rates");
    this.view = make("div", "view");
    this.view.tabIndex = 0;
    this.view.setAttribute("role", "group");
    this.view.setAttribute("aria-label", `Tokens of ${facts.name}; arrow keys go from token to token`);
    this.peek = make("p", "peek");
    this.about = make("div", "inspect");
    this.about.setAttribute("aria-live", "polite");
    this.idList = make("textarea", "id-list");
    this.idList.readOnly = true;
    this.idList.rows = 3;
    this.idList.dir = "ltr";
    this.idList.setAttribute("aria-label", `Ids of ${facts.name}`);
    const copy = make("button", "small", "Copy ids");
    copy.type = "button";
    copy.addEventListener("click", () => this.copyIds(copy));
    this.ids = make("details", "ids", make("summary", "", "Ids"), this.idList, copy);
    this.ids.addEventListener("toggle", () => this.ids.open && this.fillIds());
    const head = make("header", "", make("div", "", title, kind), make("div", "count", this.total, make("span", "", " tokens")));
    this.element = make("article", "panel", head, this.bar, this.rates, this.view, this.peek, this.about, this.ids);
    this.element.setAttribute("aria-labelledby", title.id);
    this.view.addEventListener("click", (event) => this.select(tokenAt(event)));
    this.view.addEventListener("pointermove", (event) => this.hover(tokenAt(event)));
    this.view.addEventListener("pointerleave", () => this.hover(null));
    this.view.addEventListener("keydown", (event) => this.onKey(event));
  }

  figures(found, text, most, fewest) {
    const n = found.n_tokens;
    this.total.textContent = number.format(n);
    this.element.classList.toggle("best", panels.length > 1 && n === fewest && n > 0 && !found.lost);
    this.bar.firstChild.style.width = `${(100 * n) / most}%`;
    const rate = (value, per) => (per ? (value / per).toFixed(2) : "–");
    const rows = [
      ["tokens / word", rate(n, text.n_words)],
      ["bytes / token", rate(text.n_bytes, n)],
      ["characters / token", rate(text.n_characters, n)],
    ];
    if (this.index > 0) {
      const base = last.tokenizers[0].n_tokens;
      const change = base ? (100 * (n - base)) / base : 0;
      const sign = change > 0 ? "+" : change < 0 ? "−" : "±";
      rows.push([`tokens against ${panels[0].name}`, base ? `${sign}${Math.abs(change).toFixed(1)} %` : "–"]);
    }
    if (found.lost) rows.push(["text that is lost", "yes"]);
    this.rates.replaceChildren(
      ...rows.map(([name, value]) => make("div", "", make("dt", "", make("bdi", "", name)), make("dd", "", value))),
    );
  }

  fillIds() {
    this.idList.value = (this.found?.ids ?? []).join(", ");
  }

  async copyIds(button) {
    this.fillIds();
    const n = this.found?.ids.length ?? 0;
    try {
      await navigator.clipboard.writeText(`[${this.idList.value}]`);
      button.textContent = `Copied ${number.format(n)}${n < this.found.n_tokens ? " that are shown" : ""}`;
    } catch {
      this.idList.select(); // no permission: ready for Ctrl-C
      button.textContent = "Selected: press Ctrl-C";
    }
    setTimeout(() => (button.textContent = "Copy ids"), 2000);
  }

  span(token) {
    return [startsOf(this.found)[token], this.found.ends[token]];
  }

  /** The token under the pointer, in one line; what covers the same text is marked everywhere. */
  hover(token) {
    if (token === this.hovered) return;
    this.hovered = token;
    for (const marked of document.querySelectorAll(".at")) marked.classList.remove("at");
    if (token === null) {
      this.peek.replaceChildren();
      return;
    }
    const id = this.found.ids[token];
    const [begin, end] = this.span(token);
    const data = encoder.encode(last.shown).subarray(begin, end);
    const hex = Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
    this.peek.replaceChildren(
      chip({ bytes: hex, token: this.found.spelled[id], n_bytes: data.length }),
      ` id ${id} · ${data.length} ${data.length === 1 ? "byte" : "bytes"} · token ${number.format(token + 1)}`,
    );
    for (const panel of panels) {
      const starts = startsOf(panel.found), ends = panel.found.ends;
      let low = 0, high = ends.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (ends[middle] <= begin) low = middle + 1;
        else high = middle;
      }
      const marked = panel === this ? [token] : [];
      if (panel !== this) for (let i = low; i < ends.length && starts[i] < end; i++) marked.push(i);
      for (const one of marked) for (const element of elementsOf(panel.view, one)) element.classList.add("at");
    }
  }

  reselect() {
    const token = this.selected;
    if (token === null) return;
    this.selected = null;
    const isThere = token < this.found.ids.length && this.found.ids[token] === this.selectedId;
    this.select(isThere ? token : null);
  }

  async select(token) {
    for (const element of this.view.querySelectorAll(".chosen")) element.classList.remove("chosen");
    this.selected = token;
    if (token === null) {
      this.about.replaceChildren();
      this.shownId = null;
      return;
    }
    const id = (this.selectedId = this.found.ids[token]);
    for (const element of elementsOf(this.view, token)) element.classList.add("chosen");
    const marks = this.found.marks[token];
    const notes = MARKS.filter(([bit]) => marks & bit).map(([, name]) => name);
    const shown = id + " " + marks;
    if (this.shownId === shown) return;
    const key = this.index + " " + id;
    try {
      if (!tokens.has(key)) tokens.set(key, await ask(`/api/token?tokenizer=${this.index}&id=${id}`));
    } catch (error) {
      say(error.message);
      return;
    }
    if (this.selected !== token) return; // another was chosen meanwhile
    this.shownId = shown;
    const close = make("button", "close", "×");
    close.type = "button";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => {
      this.select(null);
      this.view.focus();
    });
    this.about.replaceChildren(close, describe(tokens.get(key), notes));
  }

  onKey(event) {
    const n = this.found?.ids.length ?? 0;
    if (n === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.selected;
    const line = at === null ? null : elementsOf(this.view, at)[0]?.parentElement;
    const isRtl = line ? getComputedStyle(line).direction === "rtl" : false;
    let next;
    if (event.key === "Escape") next = null;
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = n - 1;
    else if (event.key === (isRtl ? "ArrowLeft" : "ArrowRight")) next = at === null ? 0 : Math.min(at + 1, n - 1);
    else if (event.key === (isRtl ? "ArrowRight" : "ArrowLeft")) next = at === null ? n - 1 : Math.max(at - 1, 0);
    else return;
    event.preventDefault();
    this.select(next);
    if (next !== null) elementsOf(this.view, next)[0]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

function chooseSample(index) {
  const sample = start.samples[index];
  if (!sample) return;
  field.value = sample.text;
  setLanguage(sample.language);
  changed();
}

function setLanguage(language) {
  for (const element of [field, ...panels.map((panel) => panel.view)]) {
    if (language) element.lang = language;
    else element.removeAttribute("lang");
  }
}

async function begin() {
  start = await ask("/api/start");
  panels = start.tokenizers.map((facts, i) => new Panel(facts, i));
  $("panels").append(...panels.map((panel) => panel.element));
  $("panels").classList.toggle("several", panels.length > 1);
  $("differences-label").hidden = panels.length < 2;
  start.samples.forEach((sample, i) => $("sample").append(new Option(sample.name, String(i))));
  $("sample").addEventListener("change", () => chooseSample(Number($("sample").value)));
  $("special").addEventListener("change", changed);
  $("differences").addEventListener("change", () => last && show());
  $("clear").addEventListener("click", () => {
    field.value = "";
    setLanguage("");
    changed();
    field.focus();
  });
  field.addEventListener("input", changed);
  if (field.value) changed(); // kept by the browser over a reload
  else if (start.samples.length) chooseSample(0);
  else changed();
}

begin().catch((error) => say(error.message));
