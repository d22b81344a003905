(function () {
  "use strict";
  var d = document, reply = d.getElementById("reply"), state = d.getElementById("state"), calm = state.textContent;
  function list(s, at) { return Array.prototype.slice.call((at || d).querySelectorAll(s)); }
  function ask(path) {
    reply.textContent = "The allocator decides…";
    fetch(path).then(function (r) { return r.text(); }).then(function (html) {
      reply.innerHTML = html;
    }, function (e) { reply.textContent = "No answer: " + e.message; });
  }
  function asked(form) { return new URLSearchParams(new FormData(form)).toString(); }
  list("#ask form").forEach(function (form) {
    form.addEventListener("submit", function (e) { e.preventDefault(); ask(form.id + "?" + asked(form)); });
  });
  var change = d.querySelector("#what-if select[name=change]");
  function fields() {
    list("#what-if [data-for]").forEach(function (s) { s.hidden = s.getAttribute("data-for").split(" ").indexOf(change.value) < 0; });
  }
  change.addEventListener("input", fields);
  fields();
  d.addEventListener("click", function (e) {
    var th = e.target.closest && e.target.closest("#queue tbody th");
    if (!th) { return; }
    d.querySelector("#why input").value = th.textContent;
    ask("why?pod=" + encodeURIComponent(th.textContent));
    reply.scrollIntoView();
  });
  function renew() {
    fetch(location.pathname).then(function (r) { return r.text(); }).then(function (html) {
      var fresh = new DOMParser().parseFromString(html, "text/html");
      var open = list("main details[open] summary").map(function (s) { return s.textContent; });
      var known = {};
      list("main select[id], main input[id]").forEach(function (i) { known[i.id] = i.value; });
      list("main > section", fresh).forEach(function (s) {
        var old = d.getElementById(s.id);
        if (s.id === "ask") { return; }
        if (old) { old.replaceWith(d.importNode(s, true)); } else { d.getElementById("main").appendChild(d.importNode(s, true)); }
      });
      list("main > section").forEach(function (s) { if (s.id !== "ask" && !fresh.getElementById(s.id)) { s.remove(); } });
      d.querySelector("header .meta").textContent = fresh.querySelector("header .meta").textContent;
      d.querySelector("nav").innerHTML = fresh.querySelector("nav").innerHTML;
      list("main details summary").forEach(function (s) { if (open.indexOf(s.textContent) >= 0) { s.parentNode.open = true; } });
      window.draPage(known);
      state.textContent = calm;
    }, function () { state.textContent = "The connection is lost; this is the last that is known."; });
  }
  var events = new EventSource("events");
  events.addEventListener("changed", renew);
  events.addEventListener("lost", function (e) { state.textContent = e.data; });
  events.onopen = function () { state.textContent = calm; };
  events.onerror = function () { state.textContent = "The connection is lost; this is the last that is known."; };
})();
