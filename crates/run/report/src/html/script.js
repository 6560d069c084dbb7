// Tables are sorted by a click on a heading and searched by a word. Without a script the page shows the same rows.
for (const table of document.querySelectorAll("table")) {
  const rows = () => [...table.rows].slice(1);
  const key = (row, n) => row.cells[n].dataset.by ?? row.cells[n].textContent;
  [...table.rows[0].cells].forEach((heading, n) => {
    let way = 1;
    heading.onclick = () => {
      const compared = (a, b) => way * key(a, n).localeCompare(key(b, n), undefined, { numeric: true });
      rows().sort(compared).forEach((row) => row.parentNode.append(row));
      way = -way;
    };
  });
  if (rows().length < 10) continue;
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "search";
  search.oninput = () => {
    const word = search.value.toLowerCase();
    rows().forEach((row) => (row.hidden = !row.textContent.toLowerCase().includes(word)));
  };
  table.parentNode.before(search);
}
