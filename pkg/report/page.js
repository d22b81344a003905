(function () {
  "use strict";
  var d = document;
  // page makes the tables and the map work; known has the values of controls by id.
  function page(known) {
  function list(s, at) { return Array.prototype.slice.call((at || d).querySelectorAll(s)); }
  function get(id) { return d.getElementById(id); }
  var compare = new Intl.Collator("en", { numeric: true }).compare;
  list(".tools").forEach(function (t) { t.hidden = false; });

  function sortable(table) {
    list("thead th", table).forEach(function (th, k) {
      var b = d.createElement("button");
      b.type = "button";
      while (th.firstChild) { b.appendChild(th.firstChild); }
      th.appendChild(b);
      b.addEventListener("click", function () {
        var up = th.getAttribute("aria-sort") !== "ascending";
        list("thead th", table).forEach(function (o) { o.removeAttribute("aria-sort"); });
        th.setAttribute("aria-sort", up ? "ascending" : "descending");
        var body = table.tBodies[0];
        var rows = list("tr", body).map(function (tr) {
          var cell = tr.children[k];
          return [cell.getAttribute("data-v") || cell.textContent, tr];
        });
        rows.sort(function (a, b) { return (up ? 1 : -1) * compare(a[0], b[0]); });
        rows.forEach(function (r) { body.appendChild(r[1]); });
      });
    });
  }
  list("table.sort").forEach(sortable);

  list("[data-filter]").forEach(function (input) {
    var at = get(input.getAttribute("data-filter"));
    var said = input.parentNode.parentNode.querySelector("output");
    input.addEventListener("input", function () {
      var text = input.value.toLowerCase(), n = 0;
      list("article", at).forEach(function (a) {
        a.hidden = a.textContent.toLowerCase().indexOf(text) < 0;
        if (!a.hidden) { n++; }
      });
      said.textContent = text ? n + " shown" : "";
    });
  });

  var map = get("map");
  if (!map || !get("by")) { return; }
  // nodes makes the table of the nodes when it is wanted first, and returns what it says of each.
  var made;
  function nodes() {
    if (!made) { made = make(); }
    return made;
  }
  function make() {
    var late = d.querySelector("#nodes noscript"), cells = Object.create(null);
    var box = d.createElement("div");
    box.innerHTML = late.innerHTML;
    late.replaceWith(box.firstElementChild);
    sortable(get("list"));
    list("i", map).forEach(function (i) { cells[i.title.slice(0, i.title.indexOf(":"))] = i; });
    return list("#list tbody tr").map(function (tr) {
      var c = tr.children, by = Object.create(null), name = c[0].textContent;
      (tr.getAttribute("data-c") || "").split("|").forEach(function (p) {
        var at = p.lastIndexOf(" "), n = p.slice(at + 1).split("/");
        if (at > 0) { by[p.slice(0, at)] = [+n[0], +n[1]]; }
      });
      by[""] = [+c[2].textContent, +c[3].textContent];
      var n = { name: name, tr: tr, cell: cells[name], by: by, free: +c[4].textContent,
        keys: tr.getAttribute("data-k").split("|"), trouble: +tr.getAttribute("data-t"),
        text: tr.textContent.toLowerCase() + " " + tr.getAttribute("data-k").toLowerCase() };
      n.cell.node = n;
      return n;
    });
  }
  list("#nodes details").forEach(function (t) {
    if (t.open) { nodes(); }
    t.addEventListener("toggle", nodes);
  });
  function level(n, of) {
    var u = n.by[of];
    if (!u || !u[1]) { return -1; }
    return u[0] === 0 ? 0 : u[0] >= u[1] ? 5 : Math.min(4, 1 + Math.floor(4 * u[0] / u[1]));
  }
  function share(n, of) { var u = n.by[of]; return u && u[1] ? u[0] / u[1] : 0; }
  function draw() {
    var by = +get("by").value, of = get("of").value, order = get("order").value, text = get("match").value.toLowerCase();
    var groups = Object.create(null), shown = 0;
    nodes().forEach(function (n) {
      var l = level(n, of);
      if (l < 0 || n.text.indexOf(text) < 0) { return; }
      shown++;
      n.cell.className = n.cell.className.replace(/u\d/, "u" + l);
      var g = by < 0 ? "" : n.keys[by] || "none";
      (groups[g] = groups[g] || []).push(n);
    });
    var all = d.createDocumentFragment();
    Object.keys(groups).sort(compare).forEach(function (g) {
      var used = 0, total = 0, trouble = 0;
      groups[g].sort(function (a, b) {
        var x = order === "used" ? share(b, of) - share(a, of) : order === "free" ? b.free - a.free : order === "trouble" ? b.trouble - a.trouble : 0;
        return x || compare(a.name, b.name);
      });
      var box = d.createElement("div");
      box.className = "cells";
      box.setAttribute("aria-hidden", "true");
      groups[g].forEach(function (n) { used += n.by[of][0]; total += n.by[of][1]; trouble += n.trouble ? 1 : 0; box.appendChild(n.cell); });
      var group = d.createElement("div");
      if (by >= 0) {
        var h = d.createElement("h3");
        h.textContent = g + ": " + groups[g].length.toLocaleString("en") + (groups[g].length === 1 ? " node, " : " nodes, ") + used + " of " + total + " in use" + (trouble ? ", " + trouble + " with trouble" : "");
        group.appendChild(h);
      }
      group.appendChild(box);
      all.appendChild(group);
    });
    map.textContent = "";
    map.appendChild(all);
    get("matched").textContent = text ? shown + " shown" : "";
  }
  ["by", "of", "order", "match"].forEach(function (id) { get(id).addEventListener("input", draw); });
  function size() { map.style.setProperty("--cell", get("size").value + "px"); }
  get("size").addEventListener("input", size);
  map.addEventListener("mouseover", function (e) { if (e.target.title) { get("here").textContent = e.target.title; } });
  map.addEventListener("click", function (e) {
    if (!e.target.title) { return; }
    nodes();
    var tr = e.target.node.tr;
    tr.closest("details").open = true;
    tr.scrollIntoView({ block: "center" });
  });
  // The page is drawn as its controls are at first.
  var drawn = true;
  ["by", "of", "order", "match", "size"].forEach(function (id) {
    if (known[id] === undefined || known[id] === get(id).value) { return; }
    get(id).value = known[id];
    if (id === "size") { size(); } else { drawn = false; }
  });
  if (!drawn) { draw(); }
  }
  page({});
  window.draPage = page;
})();
