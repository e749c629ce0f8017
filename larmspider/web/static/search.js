// Suggestions while somebody types; and keys, beside what the browser has: / goes to the box, j and k from result to result.
"use strict";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const box = document.getElementById("q");
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape" && event.target === box) box.blur();
    return;
  }
  const links = [...document.querySelectorAll(".hit a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "/") {
    event.preventDefault();
    box.focus();
    box.select();
  } else if (event.key === "j" && at + 1 < links.length) {
    links[at + 1].focus();
  } else if (event.key === "k" && at > 0) {
    links[at - 1].focus();
  }
});

(() => {
  const box = document.getElementById("q"), list = document.getElementById("suggested");
  if (!box || !list) return;
  let wait, newest = 0;
  box.addEventListener("input", (event) => {
    clearTimeout(wait);
    if (event.inputType === undefined || event.inputType === "insertReplacementText") return; // chosen
    wait = setTimeout(async () => {
      const number = ++newest;
      try {
        const got = await fetch(`/search/suggest?q=${encodeURIComponent(box.value)}`);
        const [, texts] = await got.json();
        if (number !== newest) return; // the answer to a later letter is there
        list.replaceChildren(...texts.map((text) => new Option(text, text)));
      } catch { list.replaceChildren(); } // no suggestions are no error
    }, 80);
  });
})();
