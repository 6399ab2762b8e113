// Proposals for fields of SQL: a listbox below the field. Pages work without it.
"use strict";
(() => {
  const SHOWN = 10, WAIT_MS = 60, AGAIN_MS = 500, BEFORE = 6000, AFTER = 1500;
  const make = (name, attributes) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const attach = (field) => {
    const single = field.tagName === "INPUT";
    const list = make("ul", { id: `${field.id}-proposals`, role: "listbox", class: "proposals", "aria-label": "proposals" });
    const said = make("span", { role: "status", class: "unseen" });
    list.hidden = true;
    field.parentElement.append(list, said);
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-haspopup", "listbox");
    field.setAttribute("aria-controls", list.id);
    // a field of several lines is a textbox and no combobox: it says in words that the list is open
    if (single) { field.setAttribute("role", "combobox"); field.setAttribute("aria-expanded", "false"); }
    // the items replace what stands between `start` and `end`; `ahead` is the text before it
    let items = [], ahead = "", start = 0, end = 0, active = -1, first = 0, waits = 0, asked = null, told = false;

    const hide = () => {
      if (list.hidden) return;
      list.hidden = true;
      list.replaceChildren();
      active = -1;
      said.textContent = "";
      field.removeAttribute("aria-activedescendant");
      if (single) field.setAttribute("aria-expanded", "false");
    };
    const close = () => {
      clearTimeout(waits);
      if (asked) asked.abort();
      asked = null;
      hide();
    };
    const option = (item, number) => {
      const row = make("li", { id: `${list.id}-${number}`, role: "option", "aria-selected": String(number === active), "aria-setsize": items.length, "aria-posinset": number + 1 });
      const name = make("bdi", { class: "mono" }), kind = make("span", { class: "dim" });
      name.textContent = item.shown;
      kind.textContent = `${item.kind}${item.detail ? ` ${item.detail}` : ""}`;
      row.append(name, kind);
      row.addEventListener("mousedown", (e) => { e.preventDefault(); accept(number); });
      return row;
    };
    const draw = () => {
      if (active >= 0) first = Math.min(active, Math.max(first, active - SHOWN + 1));
      list.replaceChildren(...items.slice(first, first + SHOWN).map((item, n) => option(item, first + n)));
      list.hidden = false;
      if (single) field.setAttribute("aria-expanded", "true");
      if (active >= 0) field.setAttribute("aria-activedescendant", `${list.id}-${active}`);
      else field.removeAttribute("aria-activedescendant");
    };
    const accept = (number) => {
      const text = items[number].text;
      field.setSelectionRange(start, end);
      told = true;
      // the old call keeps the step for undo
      if (!document.execCommand("insertText", false, text)) field.setRangeText(text, start, end, "end");
      told = false;
      close();
    };
    const show = (found, value, at) => {
      const chosen = items[active];
      items = found.proposals; end = at; start = at - found.word.length; ahead = value.slice(0, start); first = 0;
      active = chosen && !list.hidden ? items.findIndex((item) => item.text === chosen.text) : -1;
      draw();
      const words = `${items.length} proposals, the first is ${items[0].shown}`;
      if (said.textContent !== words) said.textContent = words;
    };
    // Until the answer to a longer word is there, what is shown stays as far as it fits, and replaces the longer word.
    const narrow = (before) => {
      if (list.hidden) return;
      const typed = before.slice(start), chosen = items[active];
      if (!before.startsWith(ahead) || !/^"?[\p{L}\p{N}_]*$/u.test(typed)) return hide();
      const wanted = typed.replace('"', "").toLowerCase();
      items = items.filter((item) => item.text.replaceAll('"', "").toLowerCase().includes(wanted));
      if (!items.length) return hide();
      end = before.length; active = items.indexOf(chosen); first = 0;
      draw();
    };
    const ask = async () => {
      clearTimeout(waits);
      const value = field.value, at = field.selectionStart;
      if (asked) asked.abort();
      const mine = asked = new AbortController();
      const moved = () => field.value !== value || field.selectionStart !== at || document.activeElement !== field;
      const given = { stream: field.dataset.stream, table: field.dataset.table || "", before: value.slice(Math.max(0, at - BEFORE), at), after: value.slice(at, at + AFTER) };
      try {
        const answer = await fetch(`/complete?${new URLSearchParams(given)}`, { signal: mine.signal });
        const found = answer.ok ? await answer.json() : { proposals: [], whole: true };
        if (asked !== mine || moved()) return;
        asked = null;
        if (found.proposals.length) show(found, value, at);
        else hide();
        // the console has not seen all tables yet
        if (!found.whole) waits = setTimeout(() => { if (!moved()) ask(); }, AGAIN_MS);
      } catch { if (asked === mine) close(); /* the console does not answer: no proposals */ }
    };
    const move = (by) => {
      active = active < 0 ? (by > 0 ? 0 : items.length - 1) : (active + by + items.length) % items.length;
      draw();
    };
    field.addEventListener("input", (e) => {
      if (told || e.isComposing) return;
      const before = field.value.slice(0, field.selectionStart);
      if (!/[\p{L}\p{N}_".]$/u.test(before) && !/\b(from|join)\s$/i.test(before)) return close();
      clearTimeout(waits);
      narrow(before);
      waits = setTimeout(ask, WAIT_MS);
    });
    field.addEventListener("keydown", (e) => {
      if (e.ctrlKey && e.key === " ") { e.preventDefault(); ask(); return; }
      if (list.hidden || e.isComposing || e.ctrlKey || e.metaKey || e.altKey) return;
      // the mouse has moved the place
      if (field.selectionStart !== end || field.selectionEnd !== end) return close();
      const taken = () => { e.preventDefault(); e.stopPropagation(); };
      if (e.key === "ArrowDown") { taken(); move(1); }
      else if (e.key === "ArrowUp") { taken(); move(-1); }
      else if (e.key === "Escape") { taken(); close(); }
      else if (e.key === "Tab" && !e.shiftKey) { taken(); accept(Math.max(0, active)); }
      else if (e.key === "Enter" && active >= 0) { taken(); accept(active); }
      else if (["ArrowLeft", "ArrowRight", "Home", "End", "Enter"].includes(e.key)) close();
    });
    field.addEventListener("blur", close);
  };
  document.querySelectorAll("[data-complete]").forEach(attach);
})();
