// The console's own script: refreshes by server-sent events, and keys. Pages work without it.
"use strict";
(() => {
  const root = document.documentElement;
  const stored = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
  if (stored) root.dataset.theme = stored;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const turn = () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* the choice lasts for this page */ }
  };
  const keys = document.getElementById("keys");
  const signal = document.getElementById("signal");
  const help = () => keys.open ? keys.close() : keys.showModal();
  document.getElementById("theme").addEventListener("click", turn);
  document.getElementById("help").addEventListener("click", help);

  // A value that changed with the address (the sort order) goes along with the next filter.
  const say = (word) => { if (signal.textContent !== word) signal.textContent = word; signal.dataset.state = word; };
  const events = new EventSource("/events");
  events.onopen = () => say("live");
  events.onerror = () => say("the console does not answer");
  events.onmessage = () => {
    say("live");
    const busy = document.activeElement && document.activeElement.closest("[data-still]");
    if (!document.hidden && !busy && !getSelection().toString()) htmx.trigger(document.body, "refresh");
  };

  const typing = (e) => /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName) || e.target.isContentEditable;
  const step = (by) => {
    const rows = [...document.querySelectorAll("a.row")];
    if (!rows.length) return;
    const now = rows.indexOf(document.activeElement);
    rows[Math.min(rows.length - 1, Math.max(0, now + by))].focus();
  };
  const slider = document.getElementById("slider");
  if (slider) slider.addEventListener("input", () => {
    document.getElementById("as_of").value = slider.dataset.moments.split(" ")[Number(slider.value)] || "";
  });
  // SQL that is too long for an address goes as the body of a form.
  document.addEventListener("submit", (e) => {
    const sql = new FormData(e.target).get("sql");
    if (sql && sql.length > 4000) e.target.method = "post";
  }, true);
  let going = false;
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey && e.key === "Enter" && e.target.id === "sql") { e.preventDefault(); e.target.form.requestSubmit(e.target.form.querySelector("button")); return; }
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "Escape" && typing(e)) { e.target.blur(); return; }
    if (typing(e)) return;
    if (going) {
      going = false;
      const link = document.querySelector(`nav a[data-go="${CSS.escape(e.key)}"]`);
      if (link) { e.preventDefault(); link.click(); }
      return;
    }
    if (e.key === "g") { going = true; setTimeout(() => { going = false; }, 1500); return; }
    if (e.key === "j") { e.preventDefault(); step(1); }
    if (e.key === "k") { e.preventDefault(); step(-1); }
    if (e.key === "t") turn();
    if (e.key === "?") { e.preventDefault(); help(); }
    if (e.key === "/") {
      const first = document.querySelector("input[type=search], textarea");
      if (first) { e.preventDefault(); first.focus(); }
    }
  });
})();
