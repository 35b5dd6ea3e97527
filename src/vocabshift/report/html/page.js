// Tabs, sorting, light and dark. Everything is readable without it.
(function () {
  const html = document.documentElement;
  html.classList.add("js");

  const theme = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  function paintTheme() {
    const dark = chosen === null ? prefersDark.matches : chosen === "dark";
    html.dataset.theme = dark ? "dark" : "light";
    theme.textContent = dark ? "Light" : "Dark";
    theme.setAttribute("aria-pressed", String(dark));
    theme.setAttribute("aria-label", "Dark colours");
  }
  theme.addEventListener("click", () => {
    chosen = html.dataset.theme === "dark" ? "light" : "dark";
    paintTheme();
  });
  prefersDark.addEventListener("change", paintTheme);
  paintTheme();

  for (const box of document.querySelectorAll(".tabs")) {
    const strip = box.querySelector(":scope > [role=tablist]");
    const buttons = [...strip.children];
    const select = (index, focus) => {
      buttons.forEach((button, i) => {
        button.setAttribute("aria-selected", String(i === index));
        button.tabIndex = i === index ? 0 : -1;
        document.getElementById(button.getAttribute("aria-controls")).hidden = i !== index;
      });
      if (focus) buttons[index].focus();
      strip.scrollLeft += buttons[index].getBoundingClientRect().left - strip.getBoundingClientRect().left - 24;
    };
    strip.addEventListener("click", (event) => {
      const index = buttons.indexOf(event.target.closest("button"));
      if (index >= 0) select(index, false);
    });
    strip.addEventListener("keydown", (event) => {
      const at = buttons.indexOf(document.activeElement);
      const step = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
      if (at < 0 || step === undefined) return;
      event.preventDefault();
      select((step + buttons.length) % buttons.length, true);
    });
    if (buttons.length) select(0, false);
  }

  for (const table of document.querySelectorAll("table.sort")) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    const first = [...body.rows];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const order = before === null ? "ascending" : before === "ascending" ? "descending" : null;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (order) head.setAttribute("aria-sort", order);
      const key = (row) => {
        const cell = row.cells[column];
        if (column === 0) return cell.textContent;
        return cell.dataset.v === undefined ? NaN : Number(cell.dataset.v);
      };
      const sign = order === "descending" ? -1 : 1;
      const sorted = order === null ? first : [...first].sort((a, b) => {
        const x = key(a), y = key(b);
        if (column === 0) return sign * x.localeCompare(y);
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return sign * (x - y);
      });
      body.append(...sorted);
    }));
  }

  for (const line of document.querySelectorAll("p.tl[dir]")) line.tabIndex = 0;
  showTokens(document.getElementById("main"));
})();
