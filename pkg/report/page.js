(function () {
  "use strict";
  var d = document;
  // page makes the tables and the map work; known has the values of controls by id.
  function page(known) {
  function list(s, at) { return Array.prototype.slice.call((at || d).querySelectorAll(s)); }
  function get(id) { return d.getElementById(id); }
  var compare = new Intl.Collator("en", { numeric: true }).compare;
  list(".tools").forEach(function (t) { t.hidden = false; });

  list("table.sort").forEach(function (table) {
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
  });

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
  var rows = list("#list tbody tr"), cells = list("i", map);
  var nodes = rows.map(function (tr, k) {
    var c = tr.children, by = Object.create(null);
    (tr.getAttribute("data-c") || "").split("|").forEach(function (p) {
      var at = p.lastIndexOf(" "), n = p.slice(at + 1).split("/");
      if (at > 0) { by[p.slice(0, at)] = [+n[0], +n[1]]; }
    });
    by[""] = [+c[2].textContent, +c[3].textContent];
    return { name: c[0].textContent, tr: tr, cell: cells[k], by: by, free: +c[4].textContent,
      keys: tr.getAttribute("data-k").split("|"), trouble: +tr.getAttribute("data-t"),
      text: tr.textContent.toLowerCase() + " " + tr.getAttribute("data-k").toLowerCase() };
  });
  nodes.forEach(function (n) { n.cell.node = n; });
  function level(n, of) {
    var u = n.by[of];
    if (!u || !u[1]) { return -1; }
    return u[0] === 0 ? 0 : u[0] >= u[1] ? 5 : Math.min(4, 1 + Math.floor(4 * u[0] / u[1]));
  }
  function share(n, of) { var u = n.by[of]; return u && u[1] ? u[0] / u[1] : 0; }
  function draw() {
    var by = +get("by").value, of = get("of").value, order = get("order").value, text = get("match").value.toLowerCase();
    var groups = Object.create(null), shown = 0;
    nodes.forEach(function (n) {
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
        h.textContent = g + ": " + groups[g].length + (groups[g].length === 1 ? " node, " : " nodes, ") + used + " of " + total + " in use" + (trouble ? ", " + trouble + " with trouble" : "");
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
  get("size").addEventListener("input", function () { map.style.setProperty("--cell", get("size").value + "px"); });
  map.addEventListener("mouseover", function (e) { if (e.target.node) { get("here").textContent = e.target.title; } });
  map.addEventListener("click", function (e) {
    if (!e.target.node) { return; }
    var tr = e.target.node.tr;
    tr.closest("details").open = true;
    tr.scrollIntoView({ block: "center" });
  });
  if (get("by").options.length > 1) { get("by").value = "0"; }
  ["by", "of", "order", "match", "size"].forEach(function (id) { if (known[id] !== undefined) { get(id).value = known[id]; } });
  map.style.setProperty("--cell", get("size").value + "px");
  draw();
  }
  page({});
  window.draPage = page;
})();
