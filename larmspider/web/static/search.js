// Beside what the page does without it: suggestions while somebody types, recent searches, which stay in this browser,
// and keys: / goes to the box, arrows through suggestions and from hit to hit, j and k too.
"use strict";
(() => {
  const box = document.getElementById("q"), list = document.getElementById("suggested");
  // of a hit that is no link (a file) the copy
  const hits = [...document.querySelectorAll(".hits > li")]
    .map((hit) => hit.querySelector(".hit a, a.copy")).filter(Boolean);

  for (const picture of document.querySelectorAll("img.first")) { // of a document that cannot be drawn
    const gone = () => picture.remove();
    if (picture.complete && picture.src && !picture.naturalWidth) gone(); else picture.addEventListener("error", gone);
  }

  const KEY = "larmspider-recent", WHILE_SIGNED_IN = "larmspider-recent-signed-in", MOST = 8;
  const signOut = document.querySelector('form[action$="/logout"]');
  const recent = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY));
      return Array.isArray(kept) ? kept.filter((text) => typeof text === "string").slice(0, MOST) : [];
    } catch { return []; } // no storage, or something else in it
  };
  const keep = (texts) => {
    try {
      localStorage.setItem(KEY, JSON.stringify(texts));
      if (signOut) localStorage.setItem(WHILE_SIGNED_IN, "1");
    } catch { /* private window: forget it */ }
  };
  const forget = () => {
    try { [KEY, WHILE_SIGNED_IN].forEach((key) => localStorage.removeItem(key)); } catch { /* no storage */ }
  };
  signOut?.addEventListener("submit", forget);
  try { // the session has ended by itself
    if (!signOut && localStorage.getItem(WHILE_SIGNED_IN)) forget();
  } catch { /* no storage */ }
  if (box && document.querySelector("ol.hits") && box.value)
    keep([box.value, ...recent().filter((text) => text !== box.value)].slice(0, MOST));
  const recents = document.getElementById("recents");
  if (recents && recent().length) {
    const section = recents.content.firstElementChild.cloneNode(true);
    section.querySelector("ul").append(...recent().map((text) => {
      const item = document.createElement("li"), link = document.createElement("a");
      link.href = `${document.body.dataset.base || ""}/search?q=${encodeURIComponent(text)}`;
      link.textContent = text;
      item.append(link);
      return item;
    }));
    recents.after(section);
    section.querySelector("button").addEventListener("click", () => {
      forget();
      section.remove();
      box.focus();
    });
  }

  let active = -1;
  const options = () => [...list.children];
  const close = () => {
    list.hidden = true;
    active = -1;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  };
  const show = (texts) => {
    close();
    list.replaceChildren(...texts.map((text, number) => {
      const option = document.createElement("li");
      option.id = `suggested-${number}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      option.textContent = text;
      return option;
    }));
    list.hidden = !texts.length;
    box.setAttribute("aria-expanded", String(!list.hidden));
  };
  const go = (to) => {
    const all = options();
    active = (to + all.length + 1) % (all.length + 1); // behind the last is the box itself
    all.forEach((option, at) => option.setAttribute("aria-selected", String(at === active)));
    if (all[active]) {
      box.setAttribute("aria-activedescendant", all[active].id);
      all[active].scrollIntoView({ block: "nearest" });
    } else {
      box.removeAttribute("aria-activedescendant");
    }
  };
  const choose = (text) => {
    box.value = text;
    close();
    box.form.requestSubmit();
  };
  if (box && list) {
    box.setAttribute("role", "combobox");
    box.setAttribute("aria-autocomplete", "list");
    box.setAttribute("aria-controls", list.id);
    close();
    let wait, newest = 0;
    box.addEventListener("input", () => {
      clearTimeout(wait);
      const number = ++newest;
      if (!box.value.trim()) return show(recent());
      wait = setTimeout(async () => {
        try {
          const got = await fetch(`${document.body.dataset.base || ""}/search/suggest?q=${encodeURIComponent(box.value)}`);
          const [, texts] = await got.json();
          if (number === newest && document.activeElement === box) show(texts);
        } catch { close(); } // no suggestions are no error
      }, 80);
    });
    box.addEventListener("blur", () => { newest++; close(); });
    list.addEventListener("mousedown", (event) => event.preventDefault()); // the box stays focused
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) choose(option.textContent);
    });
    box.addEventListener("keydown", (event) => {
      if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
      const down = event.key === "ArrowDown";
      if (event.key === "Escape") {
        if (list.hidden) box.blur(); else close();
        event.preventDefault();
      } else if (event.key === "Enter" && options()[active]) {
        event.preventDefault();
        choose(options()[active].textContent);
      } else if (down || event.key === "ArrowUp") {
        if (list.hidden && down && !box.value.trim()) show(recent());
        if (!list.hidden) go(down ? active + 1 : (active < 0 ? options().length : active) - 1);
        else if (down && hits.length) hits[0].focus();
        else return;
        event.preventDefault();
      }
    });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target.closest("input, textarea, select")) return;
    const at = hits.indexOf(document.activeElement);
    if (event.key === "/" && box) {
      box.focus();
      box.select();
    } else if (event.key === "j" || (event.key === "ArrowDown" && at >= 0)) {
      (hits[at + 1] || hits[at])?.focus();
    } else if (event.key === "k" && at >= 0) {
      (hits[at - 1] || hits[at]).focus(); // in the box the next k would be typed
    } else if (event.key === "ArrowUp" && at >= 0) {
      (hits[at - 1] || box)?.focus();
    } else {
      return;
    }
    event.preventDefault();
  });
})();
