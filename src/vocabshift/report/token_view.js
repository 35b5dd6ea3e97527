"use strict";
// Ids and bytes of the token under the pointer, or of the one that the arrow keys have reached in
// a line that has the focus. Text is only ever set as text.
function showTokens(root) {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.append(tip);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let marked = null;

  function bytesOf(element) {
    const given = element.dataset.b;
    if (given === undefined) return [new TextEncoder().encode(element.textContent)];
    return given.split(" ").map((hex) => Uint8Array.from(hex.match(/../g) || [], (h) => parseInt(h, 16)));
  }

  function asText(bytes) {
    try {
      const text = decoder.decode(bytes);
      return "“" + text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) =>
        c === "\u200c" || c === "\u200d" ? c
          : "⟨U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩") + "”";
    } catch {
      return "part of a character";
    }
  }

  function add(parent, name, text) {
    const child = document.createElement(name);
    child.textContent = text;
    parent.append(child, " ");
  }

  function fill(element) {
    tip.replaceChildren();
    const ids = (element.dataset.i || "").split(" ").filter(Boolean);
    const bytes = bytesOf(element);
    const marks = element.classList;
    ids.forEach((id, i) => {
      const row = document.createElement("div");
      if (marks.contains("sp") || (bytes[i] || []).length === 0) add(row, "b", element.textContent);
      else add(row, "b", asText(bytes[i]));
      row.append("id " + id + " ");
      const hex = Array.from(bytes[i] || [], (b) => b.toString(16).toUpperCase().padStart(2, "0"));
      add(row, "code", hex.length > 48 ? hex.slice(0, 48).join(" ") + " …" : hex.join(" "));
      tip.append(row);
    });
    const notes = [];
    if (ids.length === 0) notes.push("text without a token");
    if (marks.contains("cc")) notes.push(ids.length + " tokens share it: a character is torn");
    if (marks.contains("cs")) notes.push(ids.length + " tokens share this syllable");
    if (marks.contains("sw")) notes.push("superword");
    if (marks.contains("un")) notes.push("unknown to the vocabulary");
    if (marks.contains("sp")) notes.push("special token");
    if (notes.length) {
      const row = document.createElement("div");
      add(row, "em", notes.join(" · "));
      tip.append(row);
    }
  }

  function mark(element) {
    if (marked) marked.classList.remove("at");
    marked = element;
    if (!element) {
      tip.hidden = true;
      return;
    }
    element.classList.add("at");
    fill(element);
    tip.hidden = false;
    const box = element.getClientRects()[0] || element.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(box.left, width - tip.offsetWidth - 8));
    const below = box.bottom + 8 + tip.offsetHeight < window.innerHeight;
    tip.style.left = left + window.scrollX + "px";
    tip.style.top = (below ? box.bottom + 8 : box.top - tip.offsetHeight - 8) + window.scrollY + "px";
  }

  const tokenAt = (target) => (target instanceof Element ? target.closest(".tl i") : null);
  root.addEventListener("pointerover", (event) => mark(tokenAt(event.target)));
  root.addEventListener("pointerleave", () => mark(null));
  root.addEventListener("focusin", (event) => {
    if (event.target.matches(".tl") && event.target.matches(":focus-visible")) mark(event.target.firstElementChild);
  });
  root.addEventListener("focusout", () => mark(null));
  root.addEventListener("keydown", (event) => {
    const line = event.target;
    if (!(line instanceof Element) || !line.matches(".tl")) return;
    const rtl = getComputedStyle(line).direction === "rtl";
    const inside = marked && line.contains(marked);
    let next = null;
    if (event.key === "Escape") return mark(null);
    else if (event.key === "Home") next = line.firstElementChild;
    else if (event.key === "End") next = line.lastElementChild;
    else if (event.key === (rtl ? "ArrowLeft" : "ArrowRight"))
      next = inside ? marked.nextElementSibling : line.firstElementChild;
    else if (event.key === (rtl ? "ArrowRight" : "ArrowLeft"))
      next = inside ? marked.previousElementSibling : line.lastElementChild;
    else return;
    event.preventDefault();
    if (next) mark(next);
  });
}
