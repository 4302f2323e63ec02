"use strict";
// Sorts the table by a column: numbers as numbers, empty cells last; a second click turns it round.
(() => {
  const table = document.getElementById("fleet");
  const body = table.tBodies[0];
  const value = (row, place) => row.cells[place].textContent.trim();
  const order = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const x = parseFloat(a.replace(/[^0-9.-]/g, "")), y = parseFloat(b.replace(/[^0-9.-]/g, ""));
    return Number.isFinite(x) && Number.isFinite(y) ? x - y : a.localeCompare(b, "en");
  };
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      [...table.tHead.rows[0].cells].forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => order(value(a, place), value(b, place)));
      body.replaceChildren(...(down ? rows.reverse() : rows));
    });
  });
})();
