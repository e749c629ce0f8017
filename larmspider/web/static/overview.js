// The overview goes on by itself: /events sends texts, paths of curves and pieces, each by its name.
// Text is set as text; pieces are HTML that the server has escaped.
"use strict";
(() => {
  const each = (name, put) =>
    document.querySelectorAll(`[data-${name}]`).forEach((element) => put(element, element.dataset[name]));
  const change = (element, property, value) => {
    if (value !== undefined && element[property] !== value) element[property] = value;
  };
  const last = {};
  const now = () => new Date().toISOString().slice(0, 19).replace("T", " ");
  let state, latest = now();
  const show = (found) => {
    each("text", (element, key) => change(element, "textContent", found.texts[key]));
    each("path", (element, key) => {
      if (found.paths[key] !== undefined) element.setAttribute("d", found.paths[key]);
    });
    each("piece", (element, key) => {
      if (found.pieces[key] === undefined || found.pieces[key] === last[key]) return;
      if (element.contains(document.activeElement)) return; // somebody reads or follows a link there
      last[key] = element.innerHTML = found.pieces[key];
    });
    latest = now();
    state = found.states.crawl || state;
    document.getElementById("live").hidden = state !== "running";
    document.body.dataset.ticks = Number(document.body.dataset.ticks || 0) + 1;
  };
  let events;
  const listen = () => {
    if (document.hidden || events) return;
    events = new EventSource(`${document.body.dataset.base || ""}/events`);
    events.onmessage = (event) => show(JSON.parse(event.data));
    events.onerror = () => {
      document.getElementById("live").hidden = true;
      document.getElementById("condition").textContent =
        `No more updates: the crawl has ended or cannot be reached. This page is as of ${latest} UTC.`;
    }; // the browser reconnects by itself; the first update then has all texts
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && events) { events.close(); events = undefined; }
    listen();
  });
  listen();
})();
