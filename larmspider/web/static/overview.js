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
  // Curves with axes and the values under the pointer; without uPlot or scripts the server's stay.
  const plots = {};
  const colour = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();
  const round = (value, digits) => value.toLocaleString(document.documentElement.lang, { maximumFractionDigits: digits });
  const short = (value) => value >= 1e9 ? `${round(value / 1e9, 1)}G` : value >= 1e6 ? `${round(value / 1e6, 1)}M`
    : value >= 1e3 ? `${round(value / 1e3, 1)}k` : round(value, value < 10 ? 2 : 0);
  const axis = (size, values, space) => ({
    stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false },
    font: "12px system-ui, sans-serif", size, values, ...(space && { space }),
  });
  const utc = (at) => new Date(at * 1e3).toISOString();
  const clock = (all) => { // days in a long crawl, else minutes or seconds
    const span = all[all.length - 1] - all[0];
    const [from, to] = span > 2 * 86400 ? [5, 10] : span > 600 ? [11, 16] : [11, 19];
    return all.map((at) => utc(at).slice(from, to));
  };
  const newest = (all, row) => all.data[row][all.data[row].length - 1]; // without a pointer over the curve
  const plot = (place) => {
    const points = JSON.parse(place.dataset.points);
    if (!window.uPlot || points[0].length < 2) return;
    const width = () => place.clientWidth - 16;
    const drawn = new uPlot({
      width: width(), height: 170, tzDate: (at) => uPlot.tzDate(new Date(at * 1e3), "Etc/UTC"), padding: [8, 30, 0, 0],
      legend: { live: true, markers: { show: false } }, cursor: { y: false, drag: { x: true, y: false } },
      scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] } },
      axes: [axis(28, (_, all) => clock(all), 84 /* px, for 16:25:15 */), axis(52, (_, all) => all.map(short))],
      series: [{ label: "UTC", value: (all, at) => utc(at ?? newest(all, 0)).slice(0, 19).replace("T", " ") },
        { label: place.closest("figure").querySelector("figcaption").firstChild.textContent.trim(),
          stroke: colour("--accent"), width: 1.6, fill: colour("--fill"), points: { show: false },
          value: (all, value) => short(value ?? newest(all, 1)) }],
    }, points, place);
    place.querySelectorAll(":scope > svg, :scope > .axis").forEach((one) => { one.hidden = true; one.style.display = "none"; });
    new ResizeObserver(() => drawn.setSize({ width: width(), height: 170 })).observe(place.parentNode);
    return drawn;
  };
  document.querySelectorAll("[data-series]").forEach((place) => { plots[place.dataset.series] = plot(place); });
  const now = () => new Date().toISOString().slice(0, 19).replace("T", " ");
  let state, latest = now();
  const show = (found) => {
    each("text", (element, key) => change(element, "textContent", found.texts[key]));
    each("value", (element, key) => {
      if (found.texts[key] !== undefined) element.value = Number(found.texts[key]);
    });
    for (const [name, points] of Object.entries(found.series || {})) plots[name]?.setData(points);
    each("path", (element, key) => {
      if (found.paths[key] !== undefined) element.setAttribute("d", found.paths[key]);
    });
    each("piece", (element, key) => {
      if (found.pieces[key] === undefined || found.pieces[key] === last[key]) return;
      if (element.contains(document.activeElement)) return; // somebody reads or follows a link there
      last[key] = element.innerHTML = found.pieces[key];
    });
    document.dispatchEvent(new Event("larm:changed"));
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
        document.querySelector("[data-gone]").dataset.gone.replace("%", latest);
    }; // the browser reconnects by itself; the first update then has all texts
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && events) { events.close(); events = undefined; }
    listen();
  });
  listen();
})();
