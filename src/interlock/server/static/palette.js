// The palette: Ctrl-K anywhere, or typing into the search field. Without it that field is a plain form.
"use strict";
(() => {
  const palette = document.getElementById("palette");
  if (!palette) return;
  const input = document.getElementById("palette-query");
  const list = document.getElementById("palette-options");
  const options = () => [...list.querySelectorAll("[role=option]")];
  let current = 0; // the number of the marked option
  let looking = null; // the request whose answer is awaited
  let isChosen = false; // Enter was pressed before that answer came
  let timer;

  const mark = (number) => {
    const all = options();
    current = all.length ? (number + all.length) % all.length : 0;
    for (const option of all) option.setAttribute("aria-selected", option === all[current]);
    all[current]?.scrollIntoView({ block: "nearest" });
    if (all.length) input.setAttribute("aria-activedescendant", all[current].id);
    else input.removeAttribute("aria-activedescendant");
  };
  const choose = () => options()[current]?.click();
  const look = async () => {
    clearTimeout(timer);
    looking?.abort();
    const own = (looking = new AbortController());
    let answer = null;
    try {
      const response = await fetch(`/palette?${new URLSearchParams({ q: input.value })}`, { signal: own.signal });
      if (response.ok) answer = await response.text();
    } catch {
      // It was given up for a newer one, or the server is away.
    }
    if (looking !== own) return;
    looking = null;
    if (answer === null) list.textContent = "The server does not answer.";
    else list.innerHTML = answer;
    list.scrollTop = 0;
    mark(0);
    if (isChosen) choose();
  };
  const lookSoon = () => {
    isChosen = false;
    looking?.abort();
    looking = new AbortController();
    clearTimeout(timer);
    timer = setTimeout(look, 120);
  };
  const open = (text) => {
    if (!palette.open) palette.showModal();
    input.value = text;
    input.focus();
    isChosen = false;
    look();
  };

  input.addEventListener("input", lookSoon);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) mark(current + step);
    else if (event.key === "Enter" && looking) isChosen = true;
    else if (event.key === "Enter" && options().length) choose();
    else return;
    event.preventDefault();
  });
  list.addEventListener("mousemove", (event) => {
    const number = options().indexOf(event.target.closest("[role=option]"));
    if (number >= 0 && number !== current) mark(number);
  });
  palette.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option || event.target === palette) palette.close();
    if (!option?.dataset.press) return;
    event.preventDefault();
    document.getElementById(option.dataset.press).click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    palette.open ? palette.close() : open("");
  });

  const field = document.getElementById("search");
  const moveOver = () => {
    open(field.value);
    field.value = "";
  };
  field?.addEventListener("input", moveOver);
  field?.addEventListener("click", moveOver);
})();
