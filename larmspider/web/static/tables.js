// A click on a heading of a table sorts its rows: by number where all cells are numbers. Tables whose
// headings have links are sorted by the server.
"use strict";
(() => {
  const LEAST = 3;
  // days as 31.01.2026 or 31/01/2026, and points and commas, are as the page's language writes them
  const DAY = /^(\d\d)[./](\d\d)[./](\d{4})/, POINT = document.documentElement.lang === "en" ? "." : ",";
  const UNITS = { bytes: 1, byte: 1, octets: 1, ko: 1e3, Mo: 1e6, Go: 1e9, To: 1e12, T: 86400, j: 86400, Byte: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400, days: 86400, day: 86400 };
  const number = (text) => {
    const found = /^([-\d.,\u202f]+)\s*%?\s*([a-z]+)?/i.exec(text);
    if (!found || (found[2] && !(found[2] in UNITS))) return text === "–" || text === "" ? -Infinity : NaN;
    const plain = POINT === "." ? found[1].replaceAll(",", "") : found[1].replaceAll(/[.\u202f]/g, "").replace(",", ".");
    return Number(plain) * (UNITS[found[2]] ?? 1);
  };
  const sort = (heading, at, body) => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    heading.parentNode.querySelectorAll("[aria-sort]").forEach((one) => one.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => {
      const text = (row.cells[at]?.textContent.trim() ?? "").replace(DAY, "$3-$2-$1");
      return { row, text, number: number(text) };
    });
    const numbers = rows.every((one) => !Number.isNaN(one.number));
    rows.sort((a, b) => (down ? -1 : 1) * (numbers ? a.number - b.number : a.text.localeCompare(b.text, undefined, { numeric: true })));
    body.append(...rows.map((one) => one.row));
  };
  const prepare = (table) => {
    const body = table.tBodies[0], head = table.tHead?.rows[0];
    if (!body || !head || body.rows.length < LEAST || table.dataset.sorts || head.querySelector("a")) return;
    if (table.querySelector("[rowspan], [colspan]")) return;
    table.dataset.sorts = "1";
    [...head.cells].forEach((heading, at) => {
      if (heading.tagName !== "TH" || !heading.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(heading, at, body));
      heading.append(button);
    });
  };
  const all = () => document.querySelectorAll("table.data").forEach(prepare);
  all();
  document.addEventListener("larm:changed", all);
})();
