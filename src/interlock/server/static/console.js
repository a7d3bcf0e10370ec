// Everything here is comfort: without it the pages read the same and every form works.
"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  // The theme: as the system has it, light, dark.
  const themes = ["system", "light", "dark"];
  const showTheme = () => {
    const name = byId("theme-name");
    if (name) name.textContent = root.dataset.theme || "system";
  };
  const nextTheme = () => {
    const next = themes[(themes.indexOf(root.dataset.theme || "system") + 1) % themes.length];
    if (next === "system") {
      delete root.dataset.theme;
      localStorage.removeItem("theme");
    } else {
      root.dataset.theme = next;
      localStorage.setItem("theme", next);
    }
    showTheme();
  };
  showTheme();
  byId("theme")?.addEventListener("click", nextTheme);

  // Whether what is shown is what is so.
  const words = { open: "live", lost: "reconnecting", waiting: "connecting" };
  const connection = (state) => {
    const shown = byId("connection");
    if (!shown || shown.dataset.state === state) return;
    shown.dataset.state = state;
    shown.querySelector(".text").textContent = words[state];
  };
  document.addEventListener("htmx:sse:after:connection", () => connection("open"));
  document.addEventListener("htmx:sse:error", () => connection("lost"));
  document.addEventListener("htmx:sse:before:connection", (event) => {
    if (event.detail.connection.attempt > 0 && !document.hidden) connection("lost");
  });

  // A page that is told of a change fetches itself, as its address is by now.
  document.addEventListener("htmx:config:request", (event) => {
    const { ctx } = event.detail;
    if (ctx.sourceElement?.id === "main") ctx.request.action = location.pathname + location.search;
  });

  // A drawing of what lies around something begins with that in sight.
  const drawing = document.querySelector(".graph.around");
  const middle = drawing?.querySelector("[aria-current]");
  if (middle) {
    drawing.scrollLeft = middle.offsetLeft - (drawing.clientWidth - middle.offsetWidth) / 2;
    drawing.scrollTop = middle.offsetTop - (drawing.clientHeight - middle.offsetHeight) / 2;
  }

  // An open node is in sight and has the focus, and its row is marked and stays where it was.
  const currentLink = () => document.querySelector("[data-nodes][aria-current]");
  const showNode = () => {
    const node = byId("node");
    for (const link of document.querySelectorAll("[data-nodes]")) {
      const isCurrent = link.dataset.nodes.split(" ").includes(node.dataset.node);
      isCurrent ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
    }
    node.scrollTop = 0;
    node.focus({ preventScroll: true });
    const { top } = node.getBoundingClientRect();
    const isBeside = getComputedStyle(node).position === "sticky";
    if (!isBeside || top < 0 || top > innerHeight / 2) node.scrollIntoView();
    return isBeside;
  };
  let pressed = null;
  document.addEventListener("htmx:before:swap", (event) => {
    const { sourceElement } = event.detail.ctx;
    if (sourceElement?.getAttribute("hx-target") !== "#node") return;
    pressed = { link: sourceElement, top: sourceElement.getBoundingClientRect().top };
  });
  document.addEventListener("htmx:after:swap", () => {
    if (!pressed) return;
    const { link, top } = pressed;
    pressed = null;
    if (link.isConnected && link.offsetParent) scrollBy(0, link.getBoundingClientRect().top - top);
    if (showNode() && !link.isConnected) currentLink()?.scrollIntoView({ block: "nearest" });
  });
  addEventListener("load", () => {
    if (location.hash === "#node" && byId("node")?.dataset.node && showNode()) {
      currentLink()?.scrollIntoView({ block: "center" });
    }
  });

  // What time ends: counted down where it is a time, and marked once it is over. The page says by
  // which clock, which is not the browser's.
  let stamp = null;
  let ahead = 0;
  const countdown = (left) => {
    const seconds = Math.floor(left / 1000);
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    const two = (number) => String(number).padStart(2, "0");
    return seconds < 1 ? "ended" : `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(seconds % 60)} left`;
  };
  const tick = () => {
    const shown = document.querySelector("[data-clock]")?.dataset.clock;
    if (shown !== stamp) [stamp, ahead] = [shown, Date.now() - Number(shown ?? Date.now())];
    for (const one of document.querySelectorAll("[data-until]")) {
      const left = Number(one.dataset.until) - (Date.now() - ahead);
      one.toggleAttribute("data-over", left <= 0);
      if (one.localName === "time") one.textContent = countdown(left);
    }
  };
  tick();
  setInterval(tick, 1000);
  document.addEventListener("htmx:after:swap", tick);

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.classList.add("copied");
    button.title = "Copied";
  });

  // A change that cannot be taken back says what it does before it is done.
  // Asked while the event is on its way down: nothing has sent the form yet.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const choice = form.querySelector("option[data-confirm]:checked");
    const question = event.submitter?.dataset.confirm ?? form.dataset.confirm ?? choice?.dataset.confirm;
    if (question && !window.confirm(question)) {
      event.preventDefault();
      event.stopPropagation();
    } else if (choice) form.elements.confirmed.value = "yes";
  }, true);

  // After a change the page stays where it is. What was typed is used up, and the focus stays near.
  let sent = null;
  document.addEventListener("htmx:before:swap", (event) => {
    const { sourceElement } = event.detail.ctx;
    if (sourceElement?.matches("form[hx-post]")) sent = sourceElement;
  });
  document.addEventListener("htmx:after:swap", () => {
    if (!sent) return;
    sent.reset();
    sent = null;
    forgetMessage();
    if (document.activeElement === document.body) {
      (byId("control") ?? byId("main")).focus({ preventScroll: true });
    }
  });

  // A message goes after a while, and is not said again when the page is loaded again.
  let forgetting;
  const forgetMessage = () => {
    clearTimeout(forgetting);
    forgetting = setTimeout(() => byId("said").replaceChildren(), 10_000);
  };
  if (byId("said")?.firstElementChild) {
    const address = new URL(location.href);
    address.searchParams.delete("said");
    history.replaceState(history.state, "", address);
    forgetMessage();
  }

  const help = byId("help");
  byId("help-open")?.addEventListener("click", () => help.showModal());
  const keysOff = byId("keys-off");
  if (keysOff) {
    keysOff.checked = localStorage.getItem("keys") === "off";
    keysOff.addEventListener("change", () => localStorage.setItem("keys", keysOff.checked ? "off" : "on"));
  }

  const links = () => [...document.querySelectorAll("[data-list] .main-link")];
  const move = (by) => {
    const all = links();
    if (!all.length) return;
    const row = document.activeElement.closest("[data-list] li, [data-list] tr");
    const now = all.indexOf(row?.querySelector(".main-link") ?? document.activeElement);
    const next = all[Math.min(all.length - 1, Math.max(0, now < 0 ? 0 : now + by))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  const follow = (selector) => document.querySelector(selector)?.click();
  // In the card that has the focus, or in the first one.
  const onCard = (key) => (document.activeElement.closest("[data-card]") ?? document).querySelector(`[data-key=${key}]`);

  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem("keys") === "off") return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const key = event.key;
    if (isGoing) {
      isGoing = false;
      follow(`.rail [data-go="${CSS.escape(key)}"]`);
      return;
    }
    if (key === "g") { isGoing = true; return; }
    const does = {
      "?": () => help.showModal(),
      "/": () => byId("search").focus(),
      j: () => move(1),
      k: () => move(-1),
      t: nextTheme,
      f: () => follow("[data-forks]"),
      "[": () => follow("#node [rel=prev]"),
      "]": () => follow("#node [rel=next]"),
      a: () => onCard("a")?.click(),
      r: () => onCard("r")?.focus(),
    }[key];
    if (!does) return;
    event.preventDefault();
    does();
  });
})();
