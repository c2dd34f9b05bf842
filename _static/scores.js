/* The table of chapter 17: choose network, epsilon and records, sort by a column, find a system.
   No library; without this file the table stays as it is. */
(function () {
  "use strict";
  var FIRST = 2, DIGITS = [2, 3, 2, 3, 2, 1, 2, 2, 1, 0, 2, 0];

  function choices(cells, at) {
    return cells.map(function (cell) { return cell[at]; })
      .filter(function (value, i, all) { return value !== "inf" && all.indexOf(value) === i; });
  }

  function control(box, label, values, chosen, changed) {
    var outer = document.createElement("label"), inner = document.createElement("select");
    outer.textContent = label + " ";
    values.forEach(function (value) {
      var option = document.createElement("option");
      option.value = String(value);
      option.textContent = typeof value === "number" ? value.toLocaleString("en") : value;
      option.selected = String(value) === String(chosen);
      inner.appendChild(option);
    });
    inner.addEventListener("change", changed);
    outer.appendChild(inner);
    box.appendChild(outer);
    return inner;
  }

  function text(value, i) {
    return value === null || value === undefined ? "" : value.toFixed(DIGITS[i]);
  }

  function liven(place) {
    var told = JSON.parse(place.querySelector("script").textContent);
    var body = place.querySelector("tbody"), heads = place.querySelectorAll("thead th");
    var box = document.createElement("div"), by = FIRST, down = true;
    box.className = "dp-controls";
    place.insertBefore(box, place.firstChild);
    var network = control(box, "network", choices(told.cells, 1), told.shown.network, draw);
    var epsilon = control(box, "epsilon", choices(told.cells, 3).sort(function (a, b) {
      return a - b;
    }), told.shown.epsilon, draw);
    var records = control(box, "records", choices(told.cells, 2), told.shown.n, draw);
    var outer = document.createElement("label"), wanted = document.createElement("input");
    wanted.type = "search";
    outer.textContent = "find ";
    outer.appendChild(wanted);
    box.appendChild(outer);
    wanted.addEventListener("input", draw);

    function columns(cell) {
      var name = told.examples[cell[1]] || cell[1];
      return [cell[0], told.families[cell[0]]].concat(cell.slice(4),
        [[cell[0], name, cell[3], cell[2], 0].join(" ")]);
    }

    function before(a, b) {
      var x = a[by], y = b[by];
      if (x === null || y === null) { return x === y ? 0 : x === null ? 1 : -1; }
      var order = typeof x === "number" ? x - y : String(x).localeCompare(String(y));
      return down ? -order : order;
    }

    function draw() {
      var find = wanted.value.toLowerCase();
      var rows = told.cells.filter(function (cell) {
        return cell[1] === network.value && String(cell[2]) === records.value &&
          (cell[3] === "inf" || String(cell[3]) === epsilon.value);
      }).map(columns).filter(function (row) {
        return (row[0] + " " + row[1]).toLowerCase().indexOf(find) >= 0;
      }).sort(before);
      body.textContent = "";
      rows.forEach(function (row) {
        var line = document.createElement("tr");
        row.forEach(function (value, i) {
          var cell = document.createElement(i ? "td" : "th");
          cell.textContent = typeof value === "number" || value === null
            ? text(value, i - FIRST) : value;
          line.appendChild(cell);
        });
        body.appendChild(line);
      });
      heads.forEach(function (head, i) {
        head.setAttribute("aria-sort", i !== by ? "none" : down ? "descending" : "ascending");
      });
    }

    heads.forEach(function (head, i) {
      var name = head.textContent, button = document.createElement("button");
      button.textContent = name;
      button.title = "sort by " + name;
      button.addEventListener("click", function () {
        down = by === i ? !down : i >= FIRST;
        by = i;
        draw();
      });
      head.textContent = "";
      head.appendChild(button);
    });
    draw();
  }

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll(".dp-scores").forEach(liven);
  });
})();
