"use strict";
// Sorts the table by a column: figures as numbers, words by what needs a look first, empty cells
// last; a second click turns it round.
(() => {
  const table = document.getElementById("fleet");
  const body = table.tBodies[0];
  const first = ["error", "warning", "info", "diverged", "unstable", "inconclusive", "healthy"];
  const value = (row, place) => row.cells[place].textContent.trim();
  const figure = (words) => parseFloat(words.replace(/[^0-9.-]/g, ""));
  const order = (a, b, figures) => {
    if (figures) return figure(a) - figure(b);
    const x = first.indexOf(a), y = first.indexOf(b);
    return x >= 0 && y >= 0 ? x - y : a.localeCompare(b, "en", { numeric: true });
  };
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const turn = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      [...table.tHead.rows[0].cells].forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", turn < 0 ? "descending" : "ascending");
      const rows = [...body.rows].sort((one, other) => {
        const a = value(one, place), b = value(other, place);
        return a && b ? turn * order(a, b, head.classList.contains("n")) : (a === "") - (b === "");
      });
      body.replaceChildren(...rows);
    });
  });
  document.querySelectorAll(".script").forEach((one) => { one.hidden = false; });
})();
